-- Builds what a script sees: Lua's own functions but for those that reach outside, in tables that
-- cannot be changed. Lua 5.1 has no tables that cannot be changed, so a script gets an empty shell
-- before each of them: reading goes through, writing raises. What would write past that is replaced.
--
-- This runs once for each interpreter, in an environment that holds nothing.
local lua, native, libraries = ...
local type, select, tonumber = lua.type, lua.select, lua.tonumber
local getmetatable, setmetatable = lua.getmetatable, lua.setmetatable
local rawget, rawset, setfenv = lua.rawget, lua.rawset, lua.setfenv
local pcall, xpcall, resume = lua.pcall, lua.xpcall, lua.coroutine.resume
local insert, next, collect = lua.table.insert, lua.next, lua.collectgarbage

-- Shells, and what is behind each of them.
local behind = setmetatable({}, { __mode = 'k' })
-- What a script gets when it asks for the metatable of something protected.
local frozen

local function protect(real)
    local shell = {}
    behind[shell] = real
    return setmetatable(shell, { __index = real, __newindex = native.refuse, __metatable = frozen })
end
frozen = protect({})
getmetatable(frozen).__metatable = frozen
getmetatable('').__metatable = frozen

-- The environment of the functions in here, which a script could ask for.
local own = lua.getfenv(1)
behind[own] = own
setmetatable(own, { __newindex = native.refuse, __metatable = frozen })

local function expect_table(value, position, name)
    if type(value) ~= 'table' then
        native.bad_argument(position, name, 'table expected, got ' .. type(value))
    end
end

local function expect_own_table(value, position, name)
    expect_table(value, position, name)
    if behind[value] then native.refuse() end
end

local function settle(ok, ...)
    if ok then return true, ... end
    return false, native.caught(...)
end

local function settle_raised(ok, ...)
    if ok then return true, ... end
    return false, native.raised(...)
end

local globals = {}
for _, name in lua.ipairs {
    '_VERSION', 'assert', 'error', 'gcinfo', 'getfenv', 'getmetatable', 'ipairs', 'next', 'rawequal',
    'select', 'tonumber', 'tostring', 'type', 'unpack',
} do
    globals[name] = lua[name]
end

globals.load, globals.loadstring = native.load, native.loadstring

function globals.setmetatable(value, metatable)
    expect_own_table(value, 1, 'setmetatable')
    if metatable ~= nil and type(metatable) ~= 'table' then
        native.bad_argument(2, 'setmetatable', 'nil or table expected')
    end
    return setmetatable(value, metatable)
end

function globals.rawset(value, key, new)
    expect_own_table(value, 1, 'rawset')
    return rawset(value, key, new)
end

-- What is behind a shell is shown as a copy: a script that got hold of it could change it.
function globals.pairs(value)
    expect_table(value, 1, 'pairs')
    local real = behind[value]
    if not real then return next, value, nil end
    local copy = {}
    for key, content in next, real do copy[key] = content end
    return next, copy, nil
end

function globals.rawget(value, key)
    return rawget(behind[value] or value, key)
end

-- Level 0 would be the interpreter's own environment.
function globals.setfenv(what, environment)
    local level = tonumber(what)
    if level == 0 or behind[what] then native.refuse() end
    return setfenv(level and level + 1 or what, environment)
end

-- How the collector works is not for scripts to change.
function globals.collectgarbage(what, argument)
    if what == nil or what == 'collect' or what == 'count' or what == 'step' then
        return collect(what or 'collect', argument)
    end
    return 0
end

function globals.pcall(...)
    if select('#', ...) == 0 then native.bad_argument(1, 'pcall', 'value expected') end
    return settle(pcall(...))
end

function globals.xpcall(work, ...)
    local handler = ...
    if select('#', ...) == 0 then native.bad_argument(2, 'xpcall', 'value expected') end
    return settle_raised(xpcall(work, function(raised) return handler(native.raised(raised)) end))
end

function lua.coroutine.resume(thread, ...)
    if type(thread) ~= 'thread' then native.bad_argument(1, 'resume', 'coroutine expected') end
    return settle_raised(resume(thread, ...))
end

function lua.table.insert(list, ...)
    expect_own_table(list, 1, 'insert')
    return insert(list, ...)
end

for name, functions in next, native.math do
    lua.math[name] = functions
end

for _, name in lua.ipairs { 'coroutine', 'math', 'string', 'table' } do
    globals[name] = protect(lua[name])
end
for name, library in next, libraries do
    globals[name] = protect(library)
end

local within = { __index = globals, __newindex = native.refuse, __metatable = frozen }
local shell = {}
behind[shell] = globals
globals._G = setmetatable(shell, within)
setmetatable(globals, { __index = native.missing })

return {
    globals = globals,
    shell = shell,
    within = within,
    protect = protect,
    -- Calls a function with what it is given, and explains what it raises.
    run = function(work, ...)
        local count, one, two = select('#', ...), ...
        if count == 0 then return xpcall(work, native.explain) end
        return xpcall(function() return work(one, two) end, native.explain)
    end,
}
