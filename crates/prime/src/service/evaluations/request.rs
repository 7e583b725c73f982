//! The request of a hosted evaluation.

use serde_json::{Map, Value, json};

use crate::service::secrets::Secrets;

/// Prime's own default number of examples.
const DEFAULT_EXAMPLES: i64 = 5;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("a hosted evaluation needs an environment")]
    NoEnvironment,
    #[error("a hosted evaluation needs a model")]
    NoModel,
    #[error("{what} must be {expected}")]
    Range { what: &'static str, expected: &'static str },
    #[error("{text:?} is not an argument of the form KEY=VALUE")]
    Argument { text: String },
    #[error("`{key}` is in the sampling arguments and is also given separately; give it once")]
    Twice { key: &'static str },
}

#[derive(Clone, Debug, PartialEq)]
pub struct HostedEvaluation {
    /// Ids of environments; see [`crate::service::hub::details`].
    pub environment_ids: Vec<String>,
    /// With `:adapter` if there is one.
    pub model: String,
    pub name: Option<String>,
    /// Team that pays, if it is not that of the settings.
    pub team_id: Option<String>,
    /// Arguments of `load_environment`.
    pub env_args: Map<String, Value>,
    /// -1 means all.
    pub num_examples: i64,
    pub rollouts_per_example: u32,
    /// Most tokens of an answer.
    pub max_tokens: Option<u32>,
    pub temperature: Option<f64>,
    pub sampling_args: Map<String, Value>,
    pub max_concurrent: Option<u32>,
    pub max_retries: Option<u32>,
    /// Time limit of the service.
    pub timeout_minutes: Option<u32>,
    /// Additional columns of the results.
    pub state_columns: Vec<String>,
    pub custom_secrets: Secrets,
    /// Whether the environment may create sandboxes.
    pub allow_sandbox_access: bool,
    /// Whether the environment may create instances.
    pub allow_instances_access: bool,
    /// Whether the environment may open tunnels.
    pub allow_tunnel_access: bool,
}

impl Default for HostedEvaluation {
    fn default() -> Self {
        Self {
            environment_ids: Vec::new(),
            model: String::new(),
            name: None,
            team_id: None,
            env_args: Map::new(),
            num_examples: DEFAULT_EXAMPLES,
            rollouts_per_example: 1,
            max_tokens: None,
            temperature: None,
            sampling_args: Map::new(),
            max_concurrent: None,
            max_retries: None,
            timeout_minutes: None,
            state_columns: Vec::new(),
            custom_secrets: Secrets::default(),
            allow_sandbox_access: true,
            allow_instances_access: false,
            allow_tunnel_access: true,
        }
    }
}

impl HostedEvaluation {
    pub(super) fn body(&self) -> Result<Value, RequestError> {
        if self.environment_ids.is_empty() {
            return Err(RequestError::NoEnvironment);
        }
        if self.model.trim().is_empty() {
            return Err(RequestError::NoModel);
        }
        let mut body = json!({
            "environment_ids": self.environment_ids,
            "inference_model": self.model,
            "eval_config": self.eval_config()?,
        });
        if let Some(name) = &self.name {
            body["name"] = json!(name);
        }
        if let Some(team) = &self.team_id {
            body["team_id"] = json!(team);
        }
        Ok(body)
    }

    /// Sends only given values: for the rest the service's defaults hold.
    fn eval_config(&self) -> Result<Value, RequestError> {
        if self.num_examples < -1 || self.num_examples == 0 {
            return Err(RequestError::Range {
                what: "the number of examples",
                expected: "positive, or -1 for all",
            });
        }
        let positive = |what, number: Option<u32>| match number {
            Some(0) => Err(RequestError::Range { what, expected: "positive" }),
            _ => Ok(()),
        };
        positive("the number of rollouts per example", Some(self.rollouts_per_example))?;
        positive("the number of tokens", self.max_tokens)?;
        positive("the number of rollouts at a time", self.max_concurrent)?;
        positive("the time limit", self.timeout_minutes)?;
        let mut config = json!({
            "num_examples": self.num_examples,
            "rollouts_per_example": self.rollouts_per_example,
            "allow_sandbox_access": self.allow_sandbox_access,
            "allow_instances_access": self.allow_instances_access,
            "allow_tunnel_access": self.allow_tunnel_access,
        });
        if !self.env_args.is_empty() {
            config["env_args"] = Value::Object(self.env_args.clone());
        }
        if let Some(minutes) = self.timeout_minutes {
            config["timeout_minutes"] = json!(minutes);
        }
        if !self.custom_secrets.is_empty() {
            let secrets = self.custom_secrets.iter().map(|(key, value)| (key.to_owned(), json!(value)));
            config["custom_secrets"] = Value::Object(secrets.collect());
        }
        let sampling = self.sampling()?;
        if !sampling.is_empty() {
            config["sampling_args"] = Value::Object(sampling);
        }
        if let Some(number) = self.max_concurrent {
            config["max_concurrent"] = json!(number);
        }
        if let Some(number) = self.max_retries {
            config["max_retries"] = json!(number);
        }
        if !self.state_columns.is_empty() {
            config["state_columns"] = json!(self.state_columns);
        }
        Ok(config)
    }

    fn sampling(&self) -> Result<Map<String, Value>, RequestError> {
        let mut sampling = self.sampling_args.clone();
        if self.temperature.is_some_and(|temperature| !temperature.is_finite() || temperature < 0.0) {
            return Err(RequestError::Range { what: "the temperature", expected: "zero or more" });
        }
        let given = [
            ("max_tokens", self.max_tokens.map(|number| json!(number))),
            ("temperature", self.temperature.map(|number| json!(number))),
        ];
        for (key, value) in given {
            let Some(value) = value else { continue };
            if sampling.insert(key.to_owned(), value).is_some() {
                return Err(RequestError::Twice { key });
            }
        }
        Ok(sampling)
    }
}

/// Arguments that generated environments take in `load_environment`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnvironmentArguments {
    pub split: Option<String>,
    pub difficulties: Vec<String>,
    pub harness: Option<String>,
    pub num_examples: Option<i64>,
    pub seed: Option<i64>,
    /// Further arguments; later ones override earlier ones.
    pub further: Vec<(String, Value)>,
}

impl EnvironmentArguments {
    pub fn to_map(&self) -> Map<String, Value> {
        let difficulty = match self.difficulties.as_slice() {
            [] => None,
            [one] => Some(json!(one)),
            several => Some(json!(several)),
        };
        let fixed = [
            ("split", self.split.as_ref().map(|text| json!(text))),
            ("difficulty", difficulty),
            ("harness", self.harness.as_ref().map(|text| json!(text))),
            ("num_examples", self.num_examples.map(|number| json!(number))),
            ("seed", self.seed.map(|number| json!(number))),
        ];
        let fixed = fixed.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        fixed.chain(self.further.iter().cloned()).collect()
    }
}

/// Reads `KEY=VALUE`; the value is parsed as JSON if possible and is text otherwise.
pub fn parse_argument(text: &str) -> Result<(String, Value), RequestError> {
    let bad = || RequestError::Argument { text: text.chars().take(200).collect() };
    let (key, value) = text.split_once('=').ok_or_else(bad)?;
    if key.trim().is_empty() {
        return Err(bad());
    }
    let value = aec_base::json::from_str(value).unwrap_or_else(|_| json!(value));
    Ok((key.trim().to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_keep_their_json_types_and_order() {
        let further =
            ["x=1", "s=one two", "l=[1,2]", "b=true", "n=null", "seed=\"7\"", "e=", "q=a=b", "d=1.50"];
        let arguments = EnvironmentArguments {
            split: Some("eval".to_owned()),
            difficulties: vec!["medium".to_owned()],
            seed: Some(20_260_509),
            further: further.iter().map(|text| parse_argument(text).unwrap()).collect(),
            ..EnvironmentArguments::default()
        };
        assert_eq!(
            Value::Object(arguments.to_map()).to_string(),
            r#"{"split":"eval","difficulty":"medium","seed":"7","x":1,"s":"one two","l":[1,2],"b":true,"n":null,"e":"","q":"a=b","d":1.5}"#
        );
        let several = EnvironmentArguments {
            difficulties: vec!["easy".to_owned(), "medium".to_owned()],
            ..EnvironmentArguments::default()
        };
        assert_eq!(Value::Object(several.to_map()).to_string(), r#"{"difficulty":["easy","medium"]}"#);
        for bad in ["", "x", "=1", "  =2"] {
            assert!(parse_argument(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn secrets_are_sent_and_not_shown() {
        let evaluation = HostedEvaluation {
            environment_ids: vec!["e".to_owned()],
            model: "m".to_owned(),
            custom_secrets: Secrets::collect(&[], &["TOKEN=hidden".to_owned()], |_| None).unwrap(),
            ..HostedEvaluation::default()
        };
        let body = evaluation.body().unwrap();
        assert_eq!(body["eval_config"]["custom_secrets"], json!({"TOKEN": "hidden"}));
        assert!(!format!("{evaluation:?}").contains("hidden"));
    }

    #[test]
    fn numbers_out_of_range_are_refused_before_anything_is_sent() {
        let good = HostedEvaluation {
            environment_ids: vec!["e".to_owned()],
            model: "m".to_owned(),
            ..HostedEvaluation::default()
        };
        good.body().unwrap();
        let bad = [
            HostedEvaluation { environment_ids: Vec::new(), ..good.clone() },
            HostedEvaluation { model: " ".to_owned(), ..good.clone() },
            HostedEvaluation { num_examples: 0, ..good.clone() },
            HostedEvaluation { num_examples: -2, ..good.clone() },
            HostedEvaluation { rollouts_per_example: 0, ..good.clone() },
            HostedEvaluation { max_tokens: Some(0), ..good.clone() },
            HostedEvaluation { temperature: Some(f64::NAN), ..good.clone() },
            HostedEvaluation {
                max_tokens: Some(1),
                sampling_args: [("max_tokens".to_owned(), json!(2))].into_iter().collect(),
                ..good
            },
        ];
        for (index, evaluation) in bad.iter().enumerate() {
            assert!(evaluation.body().is_err(), "case {index}");
        }
    }
}
