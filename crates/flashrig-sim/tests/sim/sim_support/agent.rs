//! A scripted stand-in for the agents: it offers tools as they do, runs what is called in a
//! folder, and sends the results back until the model ends its turn.

use std::path::Path;
use std::process::Command;

use flashrig_sim::SimHandle;
use serde_json::{Value, json};

use super::{MODEL, post_json};

/// How an agent's tools look and behave.
#[derive(Clone, Copy, PartialEq)]
pub enum Make {
    /// Anthropic dialect, `Read`/`Edit`/`Write`/`Bash`, a file must be read before it is changed.
    Claude,
    /// OpenAI dialect, camel case, wraps the prompt in quotes, no exit status in results.
    OpenCode,
    /// OpenAI dialect, other names, more required arguments.
    Qwen,
    /// OpenAI dialect, one tool, its command a list.
    ShellOnly,
    /// OpenCode that gives the calls ids of its own.
    OwnIds,
    /// OpenCode whose edit tool never works.
    BrokenEdit,
}

fn tool_schemas(make: Make) -> Vec<(&'static str, Vec<&'static str>)> {
    match make {
        Make::Claude => vec![
            ("Bash", vec!["command", "description"]),
            ("Edit", vec!["file_path", "old_string", "new_string"]),
            ("Read", vec!["file_path"]),
            ("ToolSearch", vec!["query"]),
            ("Write", vec!["file_path", "content"]),
        ],
        Make::OpenCode | Make::OwnIds | Make::BrokenEdit => vec![
            ("bash", vec!["command"]),
            ("edit", vec!["filePath", "oldString", "newString"]),
            ("grep", vec!["pattern", "path"]),
            ("read", vec!["filePath"]),
            ("todowrite", vec!["todos"]),
            ("write", vec!["content", "filePath"]),
        ],
        Make::Qwen => vec![
            ("read_file", vec!["absolute_path"]),
            ("read_many_files", vec!["paths"]),
            (
                "replace",
                vec!["file_path", "old_string", "new_string", "instruction"],
            ),
            ("run_shell_command", vec!["command", "is_background"]),
            ("grep_search", vec!["pattern"]),
            ("write_file", vec!["file_path", "content"]),
        ],
        Make::ShellOnly => vec![("shell", vec!["command"])],
    }
}

fn tools(make: Make) -> Value {
    let schema = |names: &[&str]| {
        let properties: serde_json::Map<String, Value> = names
            .iter()
            .map(|name| {
                let kind = match *name {
                    "command" if make == Make::ShellOnly => {
                        json!({"type": "array", "items": {"type": "string"}})
                    }
                    "is_background" => json!({"type": "boolean"}),
                    _ => json!({"type": "string"}),
                };
                ((*name).to_owned(), kind)
            })
            .collect();
        json!({"type": "object", "properties": properties, "required": names})
    };
    let all = tool_schemas(make).into_iter().map(|(name, arguments)| {
        if make == Make::Claude {
            json!({"name": name, "description": "", "input_schema": schema(&arguments)})
        } else {
            let function =
                json!({"name": name, "description": "", "parameters": schema(&arguments)});
            json!({"type": "function", "function": function})
        }
    });
    all.collect()
}

/// An agent at work in a folder: its conversation, and what it did.
pub struct Agent<'a> {
    make: Make,
    folder: &'a Path,
    pub messages: Vec<Value>,
    read: Vec<String>,
    pub used: Vec<String>,
}

impl<'a> Agent<'a> {
    pub fn new(make: Make, folder: &'a Path, prompt: &str) -> Self {
        let place = format!("<env>\n  Working directory: {}\n</env>", folder.display());
        let messages = if make == Make::Claude {
            vec![
                json!({"role": "user", "content": [{"type": "text", "text": "<system-reminder>x</system-reminder>"},
                                                   {"type": "text", "text": prompt}]}),
                json!({"role": "system", "content": [{"type": "text", "text": place}]}),
            ]
        } else {
            let prompt = format!("\"{}\"", prompt.replace('"', "\\\""));
            vec![
                json!({"role": "system", "content": place}),
                json!({"role": "user", "content": prompt}),
            ]
        };
        Self {
            make,
            folder,
            messages,
            read: Vec::new(),
            used: Vec::new(),
        }
    }

    /// Works until the model ends its turn; gives the last text.
    pub async fn work(&mut self, sim: &SimHandle) -> String {
        for _turn in 0..60 {
            let body = json!({"model": MODEL, "max_tokens": 32000, "messages": self.messages, "tools": tools(self.make)});
            let path = if self.make == Make::Claude {
                "/v1/messages?beta=true"
            } else {
                "/v1/chat/completions"
            };
            let (status, answer) = post_json(sim, path, &body).await;
            assert!(status.is_success(), "{answer}");
            let (message, text, call) = self.take(answer);
            self.messages.push(message);
            let Some((id, name, arguments)) = call else {
                return text;
            };
            self.check_required(&name, &arguments);
            let (failed, result) = self.run(&name, &arguments);
            self.used.push(name);
            self.messages.push(if self.make == Make::Claude {
                let result = json!({"type": "tool_result", "tool_use_id": id, "content": result, "is_error": failed});
                json!({"role": "user", "content": [result]})
            } else {
                json!({"role": "tool", "tool_call_id": id, "content": result})
            });
        }
        panic!("the session does not end: {:?}", self.used);
    }

    fn take(&self, answer: Value) -> (Value, String, Option<(String, String, Value)>) {
        if self.make == Make::Claude {
            let content = answer["content"].clone();
            let blocks = content.as_array().unwrap();
            let of = |kind: &str| blocks.iter().find(|block| block["type"] == kind);
            let text = of("text")
                .map(|b| b["text"].as_str().unwrap().to_owned())
                .unwrap_or_default();
            let call = of("tool_use").map(|b| {
                (
                    b["id"].as_str().unwrap().to_owned(),
                    b["name"].as_str().unwrap().to_owned(),
                    b["input"].clone(),
                )
            });
            return (json!({"role": "assistant", "content": content}), text, call);
        }
        let mut message = answer["choices"][0]["message"].clone();
        if self.make == Make::OwnIds && message["tool_calls"].is_array() {
            message["tool_calls"][0]["id"] = json!(format!("own-{}", self.used.len()));
        }
        let text = message["content"].as_str().unwrap_or_default().to_owned();
        let call = message["tool_calls"].get(0).map(|call| {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            (
                call["id"].as_str().unwrap().to_owned(),
                call["function"]["name"].as_str().unwrap().to_owned(),
                serde_json::from_str(arguments).unwrap(),
            )
        });
        (message, text, call)
    }

    fn check_required(&self, name: &str, arguments: &Value) {
        let all = tool_schemas(self.make);
        let (_, required) = all
            .iter()
            .find(|(known, _)| *known == name)
            .expect("a tool that was offered");
        for argument in required {
            assert!(
                arguments.get(argument).is_some(),
                "{name} without {argument}: {arguments}"
            );
        }
    }

    fn run(&mut self, name: &str, arguments: &Value) -> (bool, String) {
        let text = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| arguments[name].as_str())
                .unwrap_or_default()
                .to_owned()
        };
        let path = text(&["file_path", "filePath", "absolute_path"]);
        if !path.is_empty() {
            assert!(
                Path::new(&path).starts_with(self.folder),
                "an absolute path inside the workspace: {path}"
            );
        }
        match name {
            "Read" | "read" | "read_file" => match std::fs::read_to_string(&path) {
                Ok(file) => {
                    self.read.push(path);
                    let lines = file
                        .lines()
                        .enumerate()
                        .map(|(n, line)| format!("{}\t{line}\n", n + 1));
                    (false, lines.collect())
                }
                Err(_) => (true, format!("File not found: {path}")),
            },
            "Edit" | "edit" | "replace" => {
                if self.make == Make::Claude && !self.read.contains(&path) {
                    return (
                        true,
                        "File has not been read yet. Read it first before writing to it.".into(),
                    );
                }
                let (old, new) = (
                    text(&["old_string", "oldString"]),
                    text(&["new_string", "newString"]),
                );
                let file = std::fs::read_to_string(&path).unwrap_or_default();
                if self.make == Make::BrokenEdit || file.matches(&old).count() != 1 {
                    return (
                        true,
                        "Could not find oldString in the file. It must match exactly.".into(),
                    );
                }
                std::fs::write(&path, file.replacen(&old, &new, 1)).unwrap();
                // As OpenCode does when a language server has something to say.
                (
                    false,
                    "Edit applied successfully.\n\nERROR [2:1] name not found in this scope".into(),
                )
            }
            "Write" | "write" | "write_file" => {
                std::fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
                std::fs::write(&path, text(&["content"])).unwrap();
                (false, "Wrote file successfully.".into())
            }
            "grep" | "grep_search" => (false, "No files found".into()),
            _ => {
                let (program, flag, command) = match &arguments["command"] {
                    Value::Array(list) => {
                        let word = |n: usize| list[n].as_str().unwrap().to_owned();
                        assert_eq!((word(0).as_str(), word(1).as_str()), ("bash", "-lc"));
                        // Without the login profile, which takes longer than all the rest.
                        (word(0), "-c".into(), word(2))
                    }
                    command => (
                        "sh".into(),
                        "-c".into(),
                        command.as_str().unwrap().to_owned(),
                    ),
                };
                let output = Command::new(program)
                    .args([flag, command])
                    .current_dir(self.folder)
                    .output()
                    .unwrap();
                let failed = !output.status.success();
                let said = [output.stdout, output.stderr].concat();
                (failed, String::from_utf8_lossy(&said).into_owned())
            }
        }
    }
}
