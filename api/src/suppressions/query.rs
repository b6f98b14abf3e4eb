//! The query of a list or export of suppressions.

use model::suppression::SuppressionTarget;
use store::suppression::SuppressionFilter;

use crate::prelude::*;

/// The filter of a list or export of suppressions.
#[derive(Debug, Clone, Default)]
pub struct SuppressionQuery {
    /// Only the suppression of this address or domain.
    pub email: Option<SuppressionTarget>,
    pub filter: SuppressionFilter,
}

impl RequestQuery for SuppressionQuery {
    fn read_query(query: &mut Query) -> Result<Self> {
        let email = query.text("email", "An address, or `@domain.tld`")?;
        let reasons = |words: &str| format!("Any of these reasons, separated by commas: {words}");
        let sources = |words: &str| format!("Any of these sources, separated by commas: {words}");
        let filter = SuppressionFilter {
            reasons: query.words_in_text("reason", reasons)?,
            sources: query.words_in_text("source", sources)?,
            created_after: query.time("created_after", "Only those created after this time")?,
            created_before: query.time("created_before", "Only those created before this time")?,
            ..SuppressionFilter::default()
        };
        let email = email.map(|text| SuppressionTarget::parse(&text)).transpose();
        Ok(Self { email: email.map_err(|error| Problem::field("email", error.to_string()))?, filter })
    }
}

/// Parameters of `GET /suppressions`.
#[derive(Debug)]
pub struct ListSuppressions {
    pub page: PageParameters,
    pub selection: SuppressionQuery,
}

impl RequestQuery for ListSuppressions {
    fn read_query(query: &mut Query) -> Result<Self> {
        Ok(Self { page: query.page()?, selection: SuppressionQuery::read_query(query)? })
    }
}

#[cfg(test)]
mod tests {
    use model::suppression::{SuppressionReason, SuppressionSource};

    use super::*;

    fn parse(query: &str) -> Result<SuppressionQuery> {
        SuppressionQuery::read_query(&mut Query::parse(query)?)
    }

    #[test]
    fn queries_are_parsed() {
        let read = parse(
            "reason=hard_bounce,complaint,hard_bounce&source=system&created_after=2030-01-31T09:00:00%2B01:00\
             &created_before=2031-01-01T00:00:00+01:00&email=%40example.org",
        )
        .unwrap();
        assert_eq!(read.filter.reasons, [SuppressionReason::HardBounce, SuppressionReason::Complaint]);
        assert_eq!(read.filter.sources, [SuppressionSource::System]);
        assert_eq!(read.filter.created_after, "2030-01-31T08:00:00Z".parse().ok());
        assert_eq!(read.filter.created_before, "2030-12-31T23:00:00Z".parse().ok());
        assert_eq!(read.email.unwrap().to_string(), "@example.org");
        assert!(parse("reason=&email=").unwrap().filter.reasons.is_empty());
        for bad in [
            "reason=bounce",
            "reason=,",
            "source=x",
            "created_after=yesterday",
            "email=x",
            "reason=import&reason=manual",
        ] {
            assert_eq!(parse(bad).unwrap_err().code(), ErrorCode::VALIDATION_ERROR, "{bad}");
        }
    }
}
