//! The tools that a request offers, and how a neutral step becomes a call of one of them.
//!
//! Tools are known by words in their names and by the names of their arguments, not by agent, so
//! that agents never seen before have a fair chance. What has no tool of its own goes through
//! the shell.

use serde_json::{Map, Value, json};

use super::place::Means;
use super::script::Action;
use super::{schema, shell};
use crate::Step;
use crate::ask::{Ask, Part, Speaker, ToolOffer};

const PATH: &[&str] = &[
    "file_path",
    "filePath",
    "path",
    "absolute_path",
    "filepath",
    "filename",
    "file",
    "target_file",
];
const OLD: &[&str] = &[
    "old_string",
    "oldString",
    "old_str",
    "old_text",
    "oldText",
    "old",
    "search",
];
const NEW: &[&str] = &[
    "new_string",
    "newString",
    "new_str",
    "new_text",
    "newText",
    "new",
    "replace",
];
const CONTENT: &[&str] = &["content", "contents", "file_text", "text"];
const PATTERN: &[&str] = &["pattern", "regex"];
const COMMAND: &[&str] = &["command", "cmd", "script"];
const FOLDER: &[&str] = &["path", "dir_path", "directory", "dir"];

/// The callable tools of one request.
pub struct Toolbox<'a> {
    any: bool,
    shell: Option<&'a ToolOffer>,
    read: Option<&'a ToolOffer>,
    edit: Option<&'a ToolOffer>,
    write: Option<&'a ToolOffer>,
    search: Option<&'a ToolOffer>,
}

/// The first tool whose name holds one of `words` (earlier words win) and that has an argument of
/// each of `arguments`.
fn find<'a>(
    tools: &[&'a ToolOffer],
    message: &[&str],
    arguments: &[&[&str]],
) -> Option<&'a ToolOffer> {
    let named = |tool: &ToolOffer, word: &str| {
        let bare: String = tool
            .name
            .to_lowercase()
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        bare.contains(word)
    };
    let fits = |tool: &ToolOffer| {
        arguments
            .iter()
            .all(|names| tool.first_property(names).is_some())
    };
    message.iter().find_map(|word| {
        tools
            .iter()
            .copied()
            .find(|tool| named(tool, word) && fits(tool))
    })
}

impl<'a> Toolbox<'a> {
    /// Sorts the tools of a request.
    pub fn new(ask: &'a Ask) -> Self {
        let tools: Vec<&ToolOffer> = ask.tools.iter().filter(|tool| tool.callable).collect();
        Self {
            any: !tools.is_empty(),
            shell: find(
                &tools,
                &["bash", "shell", "exec", "terminal", "command"],
                &[COMMAND],
            ),
            read: find(&tools, &["read", "view", "open"], &[PATH]),
            edit: find(&tools, &["edit", "replace", "update"], &[PATH, OLD, NEW]),
            write: find(&tools, &["write", "create", "save"], &[PATH, CONTENT]),
            search: find(&tools, &["grep", "search"], &[PATTERN]),
        }
    }

    /// Whether the request offers no tools.
    pub fn is_empty(&self) -> bool {
        !self.any
    }

    /// Whether a file can be read at all.
    pub fn can_read(&self) -> bool {
        self.read.is_some() || self.shell.is_some()
    }

    /// By what means the given try of a step is made: the proper tool first; the shell when there
    /// is none, and last.
    pub fn means(&self, action: &Action, attempt: u8) -> Means {
        let shell_from = if action.rereads() {
            super::MAX_ATTEMPTS
        } else {
            2
        };
        match (self.proper(&action.step), self.shell) {
            (Some(_), Some(_)) if attempt >= shell_from => Means::Shell,
            (Some(_), _) => Means::Tool,
            (None, _) => Means::Shell,
        }
    }

    fn proper(&self, step: &Step) -> Option<&'a ToolOffer> {
        match step {
            Step::Read { .. } => self.read,
            Step::Search { .. } => self.search,
            Step::Edit { .. } => self.edit,
            Step::Write { .. } => self.write,
            Step::Run { .. } | Step::Say { .. } => None,
        }
    }

    /// Tool name and arguments of a step; `None` when nothing offered can do it.
    pub fn call(
        &self,
        action: &Action,
        means: Means,
        root: Option<&str>,
    ) -> Option<(String, Value)> {
        match means {
            Means::Tool => self.proper_call(action, root),
            Means::Shell => self.shell_call(&shell::command(&action.step)?, action),
            Means::Reread => {
                let path = action.path()?;
                match self.read {
                    Some(tool) => Some(finish(
                        tool,
                        vec![(PATH, json!(absolute(root, path)))],
                        action,
                    )),
                    None => self.shell_call(&shell::read(path), action),
                }
            }
        }
    }

    fn proper_call(&self, action: &Action, root: Option<&str>) -> Option<(String, Value)> {
        let tool = self.proper(&action.step)?;
        let arguments: Vec<(&[&str], Value)> = match &action.step {
            Step::Read { path, .. } => vec![(PATH, json!(absolute(root, path)))],
            Step::Edit { path, old, new, .. } => {
                vec![
                    (PATH, json!(absolute(root, path))),
                    (OLD, json!(old)),
                    (NEW, json!(new)),
                ]
            }
            Step::Write { path, content, .. } => {
                vec![
                    (PATH, json!(absolute(root, path))),
                    (CONTENT, json!(content)),
                ]
            }
            Step::Search { pattern, path, .. } => {
                let mut arguments: Vec<(&[&str], Value)> = vec![(PATTERN, json!(pattern))];
                if let Some(path) = path {
                    arguments.push((FOLDER, json!(absolute(root, path))));
                }
                // Where there is a choice, the matching lines and not only the names of files.
                arguments.push((&["output_mode"], json!("content")));
                arguments
            }
            Step::Run { .. } | Step::Say { .. } => return None,
        };
        Some(finish(tool, arguments, action))
    }

    fn shell_call(&self, command: &str, action: &Action) -> Option<(String, Value)> {
        let tool = self.shell?;
        let as_list = tool
            .first_property(COMMAND)
            .and_then(|name| tool.property(name))
            .is_some_and(|property| property["type"] == "array");
        let command = if as_list {
            json!(["bash", "-lc", command])
        } else {
            json!(command)
        };
        Some(finish(tool, vec![(COMMAND, command)], action))
    }
}

/// Names the arguments as the tool does, leaves out those it does not know, and fills in what
/// else it requires.
fn finish(tool: &ToolOffer, arguments: Vec<(&[&str], Value)>, action: &Action) -> (String, Value) {
    let mut object = Map::new();
    for (names, value) in arguments {
        if let Some(name) = tool.first_property(names) {
            object.insert(name.to_owned(), value);
        }
    }
    let mut what = action.describe();
    if let Some(first) = what.get(..1).map(str::to_uppercase) {
        what.replace_range(..1, &first);
    }
    if tool.property("description").is_some() {
        object.insert("description".to_owned(), json!(what));
    }
    for name in tool.required() {
        if !object.contains_key(name) {
            object.insert(
                name.to_owned(),
                schema::fill(tool.property(name).unwrap_or(&Value::Null), &what),
            );
        }
    }
    (tool.name.clone(), Value::Object(object))
}

fn absolute(root: Option<&str>, path: &str) -> String {
    match root {
        Some(root) if !path.starts_with('/') => format!("{}/{path}", root.trim_end_matches('/')),
        _ => path.to_owned(),
    }
}

/// The workspace, as the agent gives it to the model: in the instructions first, then anywhere.
pub fn workspace_root(ask: &Ask) -> Option<String> {
    let of = |speaker: Speaker| {
        ask.messages
            .iter()
            .filter(move |m| m.speaker == speaker)
            .flat_map(|m| &m.parts)
            .filter_map(|part| match part {
                Part::Text(text) => root_in(text),
                _ => None,
            })
    };
    root_in(&ask.system)
        .or_else(|| of(Speaker::System).next())
        .or_else(|| of(Speaker::User).next())
}

fn root_in(text: &str) -> Option<String> {
    const MARKS: [&str; 4] = [
        "orking directory: ",
        "<cwd>",
        "in the directory: ",
        "orkspace root folder: ",
    ];
    text.lines().find_map(|line| {
        let mark = MARKS
            .into_iter()
            .find_map(|mark| Some(line.find(mark)? + mark.len()))?;
        let path = line[mark..]
            .split('<')
            .next()
            .unwrap_or_default()
            .trim()
            .trim_matches(['`', '"', '\'']);
        path.starts_with('/').then(|| path.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_found_in_every_manner_of_telling_it() {
        for text in [
            " - Primary working directory: /w/a b",
            "<env>\n  Working directory: /w/a b\n</env>",
            "<environment_context><cwd>/w/a b</cwd></environment_context>",
            "I'm currently working in the directory: /w/a b",
        ] {
            assert_eq!(root_in(text).as_deref(), Some("/w/a b"), "{text}");
        }
        assert_eq!(root_in("the working directory is not given"), None);
    }

    #[test]
    fn relative_paths_become_absolute_only_under_a_known_root() {
        assert_eq!(absolute(Some("/w/"), "src/a.rs"), "/w/src/a.rs");
        assert_eq!(absolute(None, "src/a.rs"), "src/a.rs");
        assert_eq!(absolute(Some("/w"), "/etc/x"), "/etc/x");
    }
}
