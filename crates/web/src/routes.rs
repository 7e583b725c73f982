//! Maps addresses to pages.

use std::sync::Arc;
use std::time::Instant;

use http::{Request, StatusCode};
use hyper::body::Incoming;

use crate::guard::{Guard, Pass};
use crate::href::{Asked, record_file};
use crate::pages::{self, Page};
use crate::respond::{self, Answer, Trouble};
use crate::site::Site;
use crate::{assets, live};

pub(crate) async fn answer(site: Arc<Site>, guard: &Guard, request: Request<Incoming>) -> Answer {
    let started = Instant::now();
    let (head, _) = request.into_parts();
    let asked = Asked::read(head.uri.path(), head.uri.query());
    let answered = match (guard.check(&head, asked.as_ref()), asked) {
        (Pass::Go, Some(asked)) => {
            let resume = head.headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
            route(Arc::clone(&site), asked, resume, head.method == http::Method::HEAD).await
        }
        (Pass::Keep { cookie, address }, _) => Ok(respond::keep(&cookie, &address)),
        (Pass::Refuse(status, what), _) => {
            Err(Trouble { status, what: what.to_owned(), fix: advice(status) })
        }
        (Pass::Go, None) => Err(Trouble::senseless("the address is not readable", "go to the first page")),
    };
    let answer = answered.unwrap_or_else(|trouble| refusal(&site, &trouble));
    respond::timed(answer, started)
}

fn advice(status: StatusCode) -> String {
    match status {
        StatusCode::MISDIRECTED_REQUEST => "use the address that `aec-bench web` printed",
        StatusCode::UNAUTHORIZED => {
            "open the address with ?token=TOKEN once, or send the header `Authorization: Bearer TOKEN`"
        }
        StatusCode::METHOD_NOT_ALLOWED => "this server shows things; commands of aec-bench change them",
        StatusCode::FORBIDDEN => "type the address into the browser, or follow a link in a page",
        _ => "go to the first page",
    }
    .to_owned()
}

/// Makes the pages that sum up the whole ledger, so that they are ready for the first request. Errors are ignored here;
/// the request will report them.
pub(crate) fn warm(site: &Site) {
    if let Some(asked) = Asked::read("/", None) {
        for page in [pages::experiments::page, pages::leaderboard::page, pages::compare::page] {
            let _made = page(site, &asked);
        }
    }
    let _read = site.library();
}

/// A client without access must not learn any name either.
fn refusal(site: &Site, trouble: &Trouble) -> Answer {
    let outside = matches!(
        trouble.status,
        StatusCode::UNAUTHORIZED | StatusCode::MISDIRECTED_REQUEST | StatusCode::FORBIDDEN
    );
    let name = if outside { "aec-bench" } else { site.places.name.as_str() };
    respond::page(trouble.status, pages::frame(name, &pages::trouble(trouble, outside)))
}

type Made = fn(&Site, &Asked) -> Result<Page, Trouble>;

async fn route(site: Arc<Site>, asked: Asked, resume: Option<u64>, head: bool) -> Result<Answer, Trouble> {
    let segments: Vec<&str> = asked.segments.iter().map(String::as_str).collect();
    let make: Made = match segments.as_slice() {
        [] => pages::experiments::page,
        ["experiment", _] => pages::experiment::page,
        ["trial", _, _] => pages::trial::page,
        ["leaderboard"] => pages::leaderboard::page,
        ["compare"] => pages::compare::page,
        ["trials"] => pages::pair::page,
        ["library"] => |site, asked| Ok(pages::library::list(site, asked)),
        ["library", ..] => pages::library::task,
        ["templates"] => |site, asked| Ok(pages::templates::list(site, asked)),
        ["templates", _, _] => pages::templates::template,
        ["datasets"] => |site, asked| Ok(pages::datasets::list(site, asked)),
        ["datasets", _] => pages::datasets::dataset,
        ["audits"] => pages::audits::page,
        ["evolution"] => pages::evolution::list,
        ["evolution", _, _] => pages::evolution::page,
        ["search"] => pages::search::page,
        ["asset", name] => return assets::find(name).ok_or_else(no_page),
        ["favicon.ico"] => return Ok(assets::icon()),
        ["artefact", digest] => {
            let digest = (*digest).to_owned();
            return site.work(move |site| pages::artefact::serve(site, &digest, &asked)).await?;
        }
        ["live", "run", experiment] => {
            let experiment = (*experiment).to_owned();
            let known = Arc::clone(&site).work(move |site| site.experiment(&experiment)).await??;
            return if head {
                Ok(respond::page(StatusCode::OK, String::new()))
            } else {
                live::run(&site, known)
            };
        }
        ["live", "evolution", kind, run] => {
            let (kind, run) = ((*kind).to_owned(), (*run).to_owned());
            let known = Arc::clone(&site).work(move |site| site.evolution_run(&kind, &run)).await??;
            return if head {
                Ok(respond::page(StatusCode::OK, String::new()))
            } else {
                live::evolution(&site, known)
            };
        }
        ["live", "trial", experiment, stem] => {
            let file = record_file(experiment, stem).ok_or_else(no_page)?;
            let offset = resume.or_else(|| asked.number("from")).unwrap_or(0);
            return follow(site, file, offset, head).await;
        }
        _ => return Err(no_page()),
    };
    site.work(move |site| {
        let page = make(site, &asked)?;
        Ok(respond::page(StatusCode::OK, pages::frame(&site.places.name, &page)))
    })
    .await?
}

async fn follow(
    site: Arc<Site>,
    file: aec_ledger::read::RecordFile,
    offset: u64,
    head: bool,
) -> Result<Answer, Trouble> {
    let looked = file.clone();
    let (known, start) = Arc::clone(&site)
        .work(move |site| {
            let start = crate::trace::start(&live::trajectory(site, &looked));
            (live::is_live(site, &looked) || live::is_recorded(site, &looked), start)
        })
        .await?;
    if !known {
        return Err(Trouble::missing(
            "this attempt is neither under way nor recorded",
            "go to its experiment",
        ));
    }
    if head {
        Ok(respond::page(StatusCode::OK, String::new()))
    } else {
        live::trial(&site, file, offset, start)
    }
}

fn no_page() -> Trouble {
    Trouble::missing("there is no such page", "use the links above, or search")
}
