//! How a server is brought back to a known state.

use super::raw_start::RawReset;

/// How a server is reset.
#[derive(Clone, Debug, PartialEq)]
pub enum Reset {
    /// It is ended and started again.
    Restart,
    /// By these requests, one after the other.
    Requests(Vec<ResetRequest>),
}

/// A request that resets.
#[derive(Clone, Debug, PartialEq)]
pub struct ResetRequest {
    /// Method.
    pub method: hyper::Method,
    /// Path, below the base address.
    pub path: String,
    /// Body.
    pub body: Option<serde_json::Value>,
}

impl Reset {
    /// Validates one.
    ///
    /// # Errors
    /// What is wrong with `[reset]`.
    pub(super) fn from_raw(raw: RawReset, is_managed: bool) -> Result<Self, String> {
        match (raw.restart, raw.requests.is_empty()) {
            (true, false) => Err("has `restart` and `requests`; give one of them".to_owned()),
            (false, true) => Err("says nothing; give `restart = true` or `requests`".to_owned()),
            (true, true) if !is_managed => {
                Err("by restart is for managed servers; give `requests`".to_owned())
            }
            (true, true) => Ok(Reset::Restart),
            (false, false) => {
                let requests = raw.requests.into_iter().map(|raw| {
                    if !raw.path.starts_with('/') {
                        return Err(format!(
                            "has the path {:?}, but a path begins with /",
                            raw.path
                        ));
                    }
                    let method = match raw.method.as_str() {
                        "GET" => hyper::Method::GET,
                        "POST" => hyper::Method::POST,
                        "PUT" => hyper::Method::PUT,
                        "DELETE" => hyper::Method::DELETE,
                        other => {
                            return Err(format!(
                                "has the method {other:?}; there are GET, POST, PUT and DELETE"
                            ));
                        }
                    };
                    Ok(ResetRequest {
                        method,
                        path: raw.path,
                        body: raw.body,
                    })
                });
                Ok(Reset::Requests(requests.collect::<Result<_, _>>()?))
            }
        }
    }
}
