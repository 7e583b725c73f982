//! The engine's list of containers. It is parsed here because the client's types only know the states that Docker
//! documents, and Podman has others, such as `stopped` for a container that has ended but is not cleaned up yet.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::engine::{EngineError, said};

/// No list is longer.
const LONGEST: usize = 64 * 1024 * 1024;
/// How long the engine may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// A container as the engine lists it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Listed {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) labels: HashMap<String, String>,
}

/// Every container with a label, running or not.
pub(crate) async fn list_containers(host: &str, label: &str) -> Result<Vec<Listed>, EngineError> {
    let filters = serde_json::json!({ "label": [label] }).to_string();
    let path = format!("/containers/json?all=true&filters={}", aec_base::text::percent_encoded(&filters));
    let asked = async {
        if let Some(socket) = host.strip_prefix("unix://") {
            return get(UnixStream::connect(socket).await.map_err(lost)?, &path).await;
        }
        let (_, address) = host.split_once("://").unwrap_or(("", host));
        get(TcpStream::connect(address.trim_end_matches('/')).await.map_err(lost)?, &path).await
    };
    let answer = tokio::time::timeout(PATIENCE, asked).await.map_err(lost)??;
    aec_base::json::from_slice(&answer)
        .map_err(|error| EngineError::Refused(format!("its list cannot be parsed: {error}")))
}

async fn get(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    path: &str,
) -> Result<Bytes, EngineError> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(lost)?;
    tokio::spawn(connection);
    let request = hyper::Request::get(path)
        .header("host", "engine")
        .body(Empty::<Bytes>::new())
        .map_err(|error| EngineError::Refused(error.to_string()))?;
    let response = sender.send_request(request).await.map_err(lost)?;
    let status = response.status();
    let body = Limited::new(response.into_body(), LONGEST).collect().await;
    let body = body.map_err(|error| EngineError::Unreachable(error.to_string()))?.to_bytes();
    if status.is_success() {
        return Ok(body);
    }
    let message = String::from_utf8_lossy(&body[..body.len().min(1000)]).into_owned();
    Err(EngineError::Refused(format!("{status}: {message}")))
}

fn lost(error: impl std::error::Error) -> EngineError {
    EngineError::Unreachable(said(&error))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[tokio::test]
    async fn states_that_nobody_documents_are_no_matter() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("engine.sock");
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let engine = std::thread::spawn(move || {
            let mut asked = Vec::new();
            for (status, body) in [
                ("200 OK", r#"[{"Id":"a","Labels":{"x":"y"},"State":"stopped"},{"Id":"b","State":7}]"#),
                ("500 Oh", r#"{"message":"no"}"#),
                ("200 OK", "[{}]"),
            ] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = vec![0; 4096];
                let count = stream.read(&mut request).unwrap();
                asked.push(String::from_utf8_lossy(&request[..count]).lines().next().unwrap().to_owned());
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
                stream.write_all(head.as_bytes()).unwrap();
                stream.write_all(body.as_bytes()).unwrap();
            }
            asked
        });
        let host = format!("unix://{}", socket.display());
        let found = list_containers(&host, "x=y").await.unwrap();
        let ids: Vec<&str> = found.iter().map(|container| container.id.as_str()).collect();
        assert_eq!((ids, found[0].labels["x"].as_str()), (vec!["a", "b"], "y"));
        assert_eq!(list_containers(&host, "x=y").await.unwrap_err().kind(), "engine_refused");
        assert_eq!(list_containers(&host, "x=y").await.unwrap_err().kind(), "engine_refused");
        let asked = engine.join().unwrap();
        assert!(asked[0].starts_with("GET /containers/json?all=true&filters=%7B%22label%22"), "{asked:?}");
        assert_eq!(list_containers("tcp://127.0.0.1:1", "x=y").await.unwrap_err().kind(), "engine_lost");
    }
}
