//! The account that a key belongs to, and the available models.

use serde_json::Value;

use crate::service::client::{ApiError, Client};

#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    pub id: String,
    /// Public name, which owns environments.
    pub slug: Option<String>,
    /// Display name.
    pub name: Option<String>,
    pub email: Option<String>,
    /// The whole answer.
    pub raw: Value,
}

pub async fn whoami(client: &Client) -> Result<Account, ApiError> {
    let raw = client.get(&["user", "whoami"], &[]).await?;
    let text = |key: &str| raw.get(key).and_then(Value::as_str).map(str::to_owned);
    let Some(id) = text("id") else {
        return Err(ApiError::malformed("GET /api/v1/user/whoami", "it has no user id"));
    };
    Ok(Account { id, slug: text("slug"), name: text("name"), email: text("email"), raw })
}

#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The id that evaluations use.
    pub id: String,
    /// Price of a million input tokens in dollars.
    pub input_price: Option<f64>,
    /// Price of a million output tokens in dollars.
    pub output_price: Option<f64>,
}

/// Available models, by id.
pub async fn models(client: &Client) -> Result<Vec<Model>, ApiError> {
    let answer = client.get_inference(&["models"]).await?;
    let Some(rows) = answer.get("data").and_then(Value::as_array) else {
        return Err(ApiError::malformed("GET /models", "it has no list `data`"));
    };
    let model = |row: &Value| {
        let price = |key: &str| row.get("pricing")?.get(key)?.as_f64();
        Some(Model {
            id: row.get("id")?.as_str()?.to_owned(),
            input_price: price("input_usd_per_mtok"),
            output_price: price("output_usd_per_mtok"),
        })
    };
    let mut models: Vec<Model> = rows.iter().filter_map(model).collect();
    models.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(models)
}
