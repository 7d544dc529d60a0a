//! Enumerations in workflow items: engines, statuses, kinds.

use std::fmt;

use kstone::Value;

use kstone_base::field::{FromValue, Invalid, text};

/// An enum whose variants are names in items.
macro_rules! names {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $type {
            /// All of them.
            pub const ALL: &[$type] = &[$($type::$variant),+];

            /// The name in items.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)+
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl From<$type> for Value {
            fn from(name: $type) -> Value {
                Value::S(name.as_str().to_owned())
            }
        }

        impl FromValue for $type {
            fn from_value(value: &Value) -> Result<Self, Invalid> {
                let text = text(value)?;
                $type::ALL.iter().copied().find(|name| name.as_str() == text).ok_or_else(|| {
                    let names: Vec<&str> = $type::ALL.iter().map(|name| name.as_str()).collect();
                    Invalid::value("", names.join(" or "), format!("`{text}`"))
                })
            }
        }
    };
}

names! {
    /// Which engine runs a workflow.
    WorkflowType {
        /// A state machine that calls functions.
        StepFunctions = "step-functions",
        /// One function whose steps are checkpointed.
        DurableFunctions = "durable-functions",
    }
}

names! {
    /// The kinds of items in the table.
    EntityType {
        /// One run of a workflow.
        Execution = "execution",
        /// An album found in the run's image.
        Album = "album",
        /// A question to a human.
        Task = "task",
        /// The sums of a day.
        Metrics = "metrics",
    }
}

names! {
    /// How far an execution is.
    ExecutionStatus {
        /// At work.
        Running = "running",
        /// Waiting for a human.
        Waiting = "waiting",
        /// Done.
        Completed = "completed",
        /// Given up.
        Failed = "failed",
    }
}

names! {
    /// How far a task is.
    TaskStatus {
        /// Waiting for an answer.
        Pending = "pending",
        /// Answered in time.
        Completed = "completed",
        /// Not answered in time.
        Timeout = "timeout",
    }
}

names! {
    /// What metrics sum up. It is also their status, so that the indexes order them by time.
    Period {
        /// A day.
        Daily = "daily",
    }
}
