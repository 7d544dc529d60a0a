// A tour of KeystoneDB's DynamoDB door with the AWS SDK for JavaScript, as an application would use
// it: entities of the workflow table, and the queries that it was designed for.
//
//     AWS_ENDPOINT_URL=http://127.0.0.1:8000 node tour.mjs
//
// Every step checks what came back. The table is deleted at the end.

import { deepStrictEqual as expect, ok, rejects } from 'node:assert';
import { randomUUID } from 'node:crypto';
import {
  ConditionalCheckFailedException,
  CreateTableCommand,
  DeleteTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  DynamoDBClient,
  ListTagsOfResourceCommand,
  ResourceNotFoundException,
  TagResourceCommand,
  TransactionCanceledException,
  UntagResourceCommand,
  UpdateTimeToLiveCommand,
  paginateListTables,
  waitUntilTableExists,
  waitUntilTableNotExists,
} from '@aws-sdk/client-dynamodb';
import {
  DescribeStreamCommand,
  DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
} from '@aws-sdk/client-dynamodb-streams';
import {
  BatchGetCommand,
  BatchWriteCommand,
  DeleteCommand,
  DynamoDBDocumentClient,
  ExecuteStatementCommand,
  ExecuteTransactionCommand,
  GetCommand,
  PutCommand,
  QueryCommand,
  ScanCommand,
  TransactGetCommand,
  TransactWriteCommand,
  UpdateCommand,
  paginateQuery,
  paginateScan,
} from '@aws-sdk/lib-dynamodb';

const TableName = `tour-javascript-${randomUUID().slice(0, 8)}`;
const client = new DynamoDBClient({});
const documents = DynamoDBDocumentClient.from(client);
const streams = new DynamoDBStreamsClient({});
const send = (command) => documents.send(command);

const STEP = 'step-functions';
const DURABLE = 'durable-functions';

// The entities.

const executionKey = (executionId) => ({ pk: executionId, sk: 'metadata' });
const albumKey = (executionId, albumIndex) => ({ pk: executionId, sk: `album-${albumIndex}` });

const execution = (executionId, workflowType, status, createdAt) => ({
  ...executionKey(executionId),
  entityType: 'execution',
  workflowType,
  executionId,
  status,
  sortValue: 0,
  endTime: null,
  estimatedCost: 0.006,
  createdAt,
});

const album = (executionId, workflowType, albumIndex) => ({
  ...albumKey(executionId, albumIndex),
  entityType: 'album',
  workflowType,
  executionId,
  albumIndex,
  sortValue: albumIndex,
  albumName: `Album ${albumIndex}`,
  year: 1960 + albumIndex,
  yearValidated: false,
  genres: new Set(['jazz', 'rock']),
  cover: new Uint8Array([0, 1, 255]),
  imageRegion: { x: 0, y: 0, width: 200, height: 200 },
});

const task = (taskId, workflowType, executionId, status, createdAt) => ({
  pk: taskId,
  sk: 'metadata',
  entityType: 'task',
  workflowType,
  executionId,
  status,
  sortValue: 0,
  albums: [{ albumIndex: 1, year: 1973 }],
  validatedData: null,
  createdAt,
});

const metrics = (date, workflowType, executionCount) => ({
  pk: date,
  sk: `metrics-${workflowType}`,
  entityType: 'metrics',
  workflowType,
  date,
  status: 'daily',
  sortValue: 0,
  executionCount,
  createdAt: `${date}T23:59:59Z`,
});

const executions = [
  execution('exec-001', STEP, 'running', '2025-01-15T10:30:00Z'),
  execution('exec-002', DURABLE, 'running', '2025-01-15T10:31:00Z'),
  execution('exec-003', STEP, 'completed', '2025-01-15T11:00:00Z'),
  execution('exec-004', STEP, 'running', '2025-01-14T09:00:00Z'),
];
const albums = Array.from({ length: 12 }, (_, at) => album('exec-001', STEP, at + 1));
const tasks = [
  task('task-001', STEP, 'exec-001', 'pending', '2025-01-15T10:40:00Z'),
  task('task-002', DURABLE, 'exec-002', 'pending', '2025-01-15T10:35:00Z'),
];
const days = [metrics('2025-01-15', STEP, 25), metrics('2025-01-15', DURABLE, 24)];
const everything = [...executions, ...albums, ...tasks, ...days];

// The queries that the table was designed for.

const query = async (input) => (await send(new QueryCommand({ TableName, ...input }))).Items;

const getExecutionWithAlbums = async (executionId) => {
  const items = await query({
    KeyConditionExpression: 'pk = :pk',
    ExpressionAttributeValues: { ':pk': executionId },
  });
  const metadata = items.find((item) => item.sk === 'metadata');
  const found = items.filter((item) => item.sk.startsWith('album-'));
  return { ...metadata, albums: found.sort((a, b) => a.albumIndex - b.albumIndex) };
};

const getRunningExecutions = (workflowType) =>
  query({
    IndexName: 'GSI1',
    KeyConditionExpression: 'workflowType = :w AND entityType = :e AND #status = :s',
    ExpressionAttributeNames: { '#status': 'status' },
    ExpressionAttributeValues: { ':w': workflowType, ':e': 'execution', ':s': 'running' },
  });

const getAlbumsByExecution = (workflowType, executionId) =>
  query({
    IndexName: 'GSI2',
    KeyConditionExpression: 'workflowType = :w AND executionId = :x AND entityType = :e',
    ExpressionAttributeValues: { ':w': workflowType, ':x': executionId, ':e': 'album' },
  });

const getPendingTasks = () =>
  query({
    IndexName: 'GSI3',
    KeyConditionExpression: 'entityType = :e AND #status = :s',
    ExpressionAttributeNames: { '#status': 'status' },
    ExpressionAttributeValues: { ':e': 'task', ':s': 'pending' },
  });

const compareMetrics = async (date) => {
  const items = await query({
    KeyConditionExpression: 'pk = :pk AND begins_with(sk, :sk)',
    ExpressionAttributeValues: { ':pk': date, ':sk': 'metrics-' },
  });
  return {
    stepFunctions: items.find((item) => item.workflowType === STEP),
    durableFunctions: items.find((item) => item.workflowType === DURABLE),
  };
};

const hashRange = (hashes, ranges) => [
  ...hashes.map((AttributeName) => ({ AttributeName, KeyType: 'HASH' })),
  ...ranges.map((AttributeName) => ({ AttributeName, KeyType: 'RANGE' })),
];

const indexes = {
  GSI1: hashRange(['workflowType', 'entityType'], ['status', 'createdAt']),
  GSI2: hashRange(['workflowType', 'executionId'], ['entityType', 'sortValue']),
  GSI3: hashRange(['entityType'], ['status', 'createdAt']),
};

const describe = async () => (await client.send(new DescribeTableCommand({ TableName }))).Table;

// The tour.

const stops = {
  async tables() {
    const texts = ['pk', 'sk', 'workflowType', 'entityType', 'status', 'createdAt', 'executionId'];
    await client.send(new CreateTableCommand({
      TableName,
      KeySchema: hashRange(['pk'], ['sk']),
      AttributeDefinitions: [
        ...texts.map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
        { AttributeName: 'sortValue', AttributeType: 'N' },
      ],
      GlobalSecondaryIndexes: Object.entries(indexes).map(([IndexName, KeySchema]) => (
        { IndexName, KeySchema, Projection: { ProjectionType: 'ALL' } }
      )),
      BillingMode: 'PAY_PER_REQUEST',
      StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_IMAGE' },
    }));
    await waitUntilTableExists({ client, maxWaitTime: 30, minDelay: 1 }, { TableName });
    const described = await describe();
    expect(described.TableStatus, 'ACTIVE');
    expect(described.BillingModeSummary.BillingMode, 'PAY_PER_REQUEST');
    ok(described.CreationDateTime instanceof Date);
    const found = described.GlobalSecondaryIndexes.map((index) => [index.IndexName, index.KeySchema]);
    expect(Object.fromEntries(found), indexes);
    const names = [];
    for await (const page of paginateListTables({ client, pageSize: 1 }, {})) {
      names.push(...page.TableNames);
    }
    ok(names.includes(TableName));
  },

  async items() {
    const Key = albumKey('exec-001', 1);
    await send(new PutCommand({ TableName, Item: albums[0] }));
    expect((await send(new GetCommand({ TableName, Key }))).Item, albums[0]);
    const some = await send(new GetCommand({
      TableName,
      Key,
      ProjectionExpression: 'albumName, imageRegion.width',
    }));
    expect(some.Item, { albumName: 'Album 1', imageRegion: { width: 200 } });
    const { Attributes } = await send(new UpdateCommand({
      TableName,
      Key,
      UpdateExpression: 'SET priceEstimate = :price, tracks = list_append(:none, :tracks) REMOVE cover',
      ExpressionAttributeValues: { ':price': 45.5, ':none': [], ':tracks': ['one'] },
      ReturnValues: 'UPDATED_NEW',
    }));
    expect(Attributes, { priceEstimate: 45.5, tracks: ['one'] });
    const gone = await send(new DeleteCommand({ TableName, Key, ReturnValues: 'ALL_OLD' }));
    expect(gone.Attributes.priceEstimate, 45.5);
    expect((await send(new GetCommand({ TableName, Key }))).Item, undefined);
  },

  async batches() {
    const PutRequests = everything.map((Item) => ({ PutRequest: { Item } }));
    for (let at = 0; at < PutRequests.length; at += 25) {
      const RequestItems = { [TableName]: PutRequests.slice(at, at + 25) };
      const written = await send(new BatchWriteCommand({ RequestItems }));
      expect(written.UnprocessedItems, {});
    }
    const Keys = albums.map(({ pk, sk }) => ({ pk, sk }));
    const read = await send(new BatchGetCommand({ RequestItems: { [TableName]: { Keys } } }));
    const found = read.Responses[TableName].sort((a, b) => a.albumIndex - b.albumIndex);
    expect(found, albums);
  },

  async queries() {
    expect(await getExecutionWithAlbums('exec-001'), { ...executions[0], albums });
    expect(await getRunningExecutions(STEP), [executions[3], executions[0]]);
    expect(await getRunningExecutions(DURABLE), [executions[1]]);
    expect(await getAlbumsByExecution(STEP, 'exec-001'), albums);
    expect(await getAlbumsByExecution(DURABLE, 'exec-001'), []);
    expect(await getPendingTasks(), [tasks[1], tasks[0]]);
    expect(await compareMetrics('2025-01-15'), {
      stepFunctions: days[0],
      durableFunctions: days[1],
    });
    await rejects(
      query({
        IndexName: 'GSI2',
        KeyConditionExpression: 'workflowType = :w AND executionId = :x AND sortValue = :n',
        ExpressionAttributeValues: { ':w': STEP, ':x': 'exec-001', ':n': 1 },
      }),
      { name: 'ValidationException' },
    );
  },

  async pagination() {
    const pages = [];
    const input = {
      TableName,
      KeyConditionExpression: 'pk = :pk AND begins_with(sk, :sk)',
      ExpressionAttributeValues: { ':pk': 'exec-001', ':sk': 'album-' },
      ScanIndexForward: false,
    };
    for await (const page of paginateQuery({ client: documents, pageSize: 5 }, input)) {
      pages.push(page.Items.map((item) => item.sk));
    }
    expect(pages.flat(), albums.map((item) => item.sk).sort().reverse());
    expect(pages.map((page) => page.length), [5, 5, 2]);
    let count = 0;
    for await (const page of paginateScan({ client: documents, pageSize: 4 }, { TableName })) {
      count += page.Count;
    }
    expect(count, everything.length);
    const filtered = await send(new ScanCommand({
      TableName,
      FilterExpression: 'contains(genres, :g) AND #year BETWEEN :a AND :b AND size(cover) = :n',
      ExpressionAttributeNames: { '#year': 'year' },
      ExpressionAttributeValues: { ':g': 'jazz', ':a': 1962, ':b': 1964, ':n': 3 },
    }));
    expect([filtered.Count, filtered.ScannedCount], [3, everything.length]);
  },

  async conditions() {
    const complete = () => send(new UpdateCommand({
      TableName,
      Key: { pk: 'task-001', sk: 'metadata' },
      UpdateExpression: 'SET #status = :completed',
      ConditionExpression: '#status = :pending',
      ExpressionAttributeNames: { '#status': 'status' },
      ExpressionAttributeValues: { ':completed': 'completed', ':pending': 'pending' },
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    }));
    await complete();
    await rejects(complete(), (error) => {
      ok(error instanceof ConditionalCheckFailedException);
      expect(error.message, 'The conditional request failed');
      expect(error.Item.status, { S: 'completed' });
      return true;
    });
    expect(await getPendingTasks(), [tasks[1]]);
  },

  async transactions() {
    const Item = execution('exec-005', STEP, 'running', '2025-01-17T00:00:00Z');
    const put = { Put: { TableName, Item, ConditionExpression: 'attribute_not_exists(pk)' } };
    const check = {
      ConditionCheck: {
        TableName,
        Key: executionKey('exec-001'),
        ConditionExpression: 'attribute_exists(pk)',
      },
    };
    await send(new TransactWriteCommand({ TransactItems: [put, check] }));
    const both = await send(new TransactGetCommand({
      TransactItems: ['exec-005', 'exec-999'].map((id) => ({ Get: { TableName, Key: executionKey(id) } })),
    }));
    expect(both.Responses.map((response) => response.Item), [Item, undefined]);
    await rejects(send(new TransactWriteCommand({ TransactItems: [check, put] })), (error) => {
      ok(error instanceof TransactionCanceledException);
      expect(error.CancellationReasons.map((r) => r.Code), ['None', 'ConditionalCheckFailed']);
      return true;
    });
  },

  async partiql() {
    const run = async (Statement, Parameters) =>
      (await send(new ExecuteStatementCommand({ Statement, Parameters }))).Items;
    await run(`INSERT INTO "${TableName}" VALUE {'pk': ?, 'sk': 'a', 'n': ?}`, ['partiql', 1]);
    await run(`UPDATE "${TableName}" SET n = n + 1 WHERE pk = 'partiql' AND sk = 'a'`);
    expect(await run(`SELECT * FROM "${TableName}" WHERE pk = 'partiql'`), [
      { pk: 'partiql', sk: 'a', n: 2 },
    ]);
    const albumOf = `SELECT albumName FROM "${TableName}" WHERE pk = ? AND sk IN ['album-2', 'album-10']`;
    const names = (await run(albumOf, ['exec-001'])).map((item) => item.albumName);
    expect(names.sort(), ['Album 10', 'Album 2']);
    await send(new ExecuteTransactionCommand({
      TransactStatements: [
        { Statement: `DELETE FROM "${TableName}" WHERE pk = 'partiql' AND sk = 'a'` },
        { Statement: `INSERT INTO "${TableName}" VALUE {'pk': 'partiql', 'sk': 'b'}` },
      ],
    }));
    expect(await run(`SELECT sk FROM "${TableName}" WHERE pk = 'partiql'`), [{ sk: 'b' }]);
  },

  async timeToLive() {
    await client.send(new UpdateTimeToLiveCommand({
      TableName,
      TimeToLiveSpecification: { AttributeName: 'ttl', Enabled: true },
    }));
    const described = await client.send(new DescribeTimeToLiveCommand({ TableName }));
    expect(described.TimeToLiveDescription.AttributeName, 'ttl');
    const now = Math.floor(Date.now() / 1000);
    await send(new PutCommand({ TableName, Item: { pk: 'ttl', sk: 'over', ttl: now - 60 } }));
    await send(new PutCommand({ TableName, Item: { pk: 'ttl', sk: 'not-yet', ttl: now + 3600 } }));
    const left = await query({
      KeyConditionExpression: 'pk = :pk',
      ExpressionAttributeValues: { ':pk': 'ttl' },
    });
    expect(left.map((item) => item.sk), ['not-yet']);
  },

  async tags() {
    const { TableArn: ResourceArn } = await describe();
    const Tags = [{ Key: 'team', Value: 'records' }, { Key: 'stage', Value: 'tour' }];
    await client.send(new TagResourceCommand({ ResourceArn, Tags }));
    await client.send(new UntagResourceCommand({ ResourceArn, TagKeys: ['team'] }));
    const listed = await client.send(new ListTagsOfResourceCommand({ ResourceArn }));
    expect(listed.Tags, [Tags[1]]);
  },

  async changeStream() {
    const { LatestStreamArn: StreamArn } = await describe();
    const { StreamDescription } = await streams.send(new DescribeStreamCommand({ StreamArn }));
    expect(StreamDescription.StreamViewType, 'NEW_IMAGE');
    const records = [];
    for (const { ShardId } of StreamDescription.Shards) {
      const start = { StreamArn, ShardId, ShardIteratorType: 'TRIM_HORIZON' };
      let { ShardIterator } = await streams.send(new GetShardIteratorCommand(start));
      while (ShardIterator) {
        const page = await streams.send(new GetRecordsCommand({ ShardIterator }));
        records.push(...page.Records);
        ShardIterator = page.Records.length > 0 ? page.NextShardIterator : undefined;
      }
    }
    const ofTask = records.filter((record) => record.dynamodb.Keys.pk.S === 'task-001');
    expect(ofTask.map((record) => record.eventName), ['INSERT', 'MODIFY']);
    expect(ofTask[1].dynamodb.NewImage.status, { S: 'completed' });
    expect(ofTask[1].dynamodb.OldImage, undefined);
  },

  async deletion() {
    await client.send(new DeleteTableCommand({ TableName }));
    await waitUntilTableNotExists({ client, maxWaitTime: 30, minDelay: 1 }, { TableName });
    await rejects(send(new ScanCommand({ TableName })), ResourceNotFoundException);
  },
};

for (const [name, stop] of Object.entries(stops)) {
  await stop();
  console.log(`javascript: ${name} ok`);
}
