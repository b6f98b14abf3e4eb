//! Keys: bytes whose order is the order of the parts they were built from.
//!
//! A key is a space byte (which noun's rows these are), then the parts. Every tenant's row goes on
//! with its account's 16 bytes, so that one account's rows are one range. Parts:
//!
//! ```text
//! u8 u16 u32 u64   big-endian                                   numeric order
//! i64, time        big-endian with the sign bit turned over     numeric order
//! id               16 bytes (a time-ordered id)                 order of birth
//! text, bytes      00 becomes 00 FF, then 00 00 ends it         byte order, a prefix sorts first
//! ```
//!
//! Fixed-width parts need no mark; variable ones carry their own end, so no part can run into the
//! next and two different tuples never make one key. [`KeyReader`] takes the parts out again.
//! Prefix ranges: [`range_of`], or [`KeyBuilder::range`].
//!
//! Limit: the engine refuses keys above [`crate::engine::KEY_BYTES_MAX`].

use std::ops::Range;

use bytes::Bytes;
use jiff::Timestamp;
use mail::id::AccountId;
use thiserror::Error;

use crate::engine::{KEY_BYTES_MAX, Key};

/// Which noun's rows: the first byte of every key. A number, once released, is never used again for
/// anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Space {
    /// What the store as a whole knows about itself (format, leases).
    Meta = 1,
    /// Accounts.
    Account = 2,
    /// Accounts by their owner's email address.
    AccountByEmail = 3,
    /// API keys.
    ApiKey = 4,
    /// API keys by the hash of their secret.
    ApiKeyByHash = 5,
    /// SMTP credentials.
    SmtpCredential = 6,
    /// SMTP credentials by the hash of their secret.
    SmtpCredentialByHash = 7,
    /// Sending domains.
    Domain = 8,
    /// Sending domains by name.
    DomainByName = 9,
    /// How many sending domains accounts have.
    DomainCount = 10,
    /// How far the records of sending domains are.
    DomainSetup = 11,
    /// Sending domains by partition and when they are looked at next.
    DomainSetupByTime = 12,
    /// Claims to domains that another account has.
    DomainClaim = 13,
    /// Claims that are open, by the domain's name.
    DomainClaimByName = 14,
    /// Credentials for DNS providers.
    DnsCredential = 15,
    /// Emails.
    Email = 16,
    /// Recipients of emails.
    Recipient = 17,
    /// Delivery attempts.
    Attempt = 18,
    /// Bodies of emails.
    Body = 19,
    /// Events, in the commit that made them true.
    Event = 20,
    /// Tasks by partition and due time.
    Task = 24,
    /// Nodes.
    Node = 25,
    /// Who owns a partition of the task space.
    Partition = 26,
    /// Queues that their owner is to look at, because another node changed something in them.
    Hint = 27,
    /// Idempotency keys.
    Idempotency = 28,
    /// Idempotency keys by when they were used.
    IdempotencyByTime = 29,
    /// Events that have not been told yet, by partition.
    Outbox = 30,
    /// What accounts have used up of their plans, by period.
    Usage = 31,
    /// Scheduled emails by partition and due time.
    ScheduledByTime = 32,
    /// When scheduled emails are due, and what became of them.
    Schedule = 33,
    /// Suppressions by whom they are about.
    Suppression = 38,
    /// Suppressions by id, which is by time.
    SuppressionById = 39,
    /// Suppressions by reason, source and time.
    SuppressionByTime = 40,
    /// Opt-outs by category and address.
    OptOut = 41,
    /// Opt-outs by category and id, which is by time.
    OptOutById = 42,
    /// Imports of suppressions, and their lists.
    SuppressionImport = 43,
    /// Imports that are not done.
    SuppressionImportOpen = 44,
    /// Templates.
    Template = 34,
    /// Templates by alias.
    TemplateByAlias = 35,
    /// Templates by name.
    TemplateByName = 36,
    /// Versions of templates, and bodies of drafts and versions.
    TemplateVersion = 37,
    /// Users.
    User = 45,
    /// Users by their address.
    UserByEmail = 46,
    /// Sessions of users.
    Session = 47,
    /// Links that sign a user in.
    SignInLink = 48,
    /// The request log.
    RequestLog = 49,
    /// When credentials were last used.
    LastUsed = 50,
    /// Opens and clicks of emails.
    Tracking = 51,
    /// Emails by the terms that they are found by.
    EmailTerm = 52,
    /// Under which term of its status an email is listed.
    EmailListed = 53,
    /// What happened, counted by the hour.
    Metric = 54,
    /// DMARC aggregate reports that were counted, by domain and day.
    DmarcReport = 84,
    /// What they say, summed up by domain, day and address.
    DmarcSource = 85,
    /// Product events.
    ProductEvent = 63,
    /// Product events by name, by address, by user id, and by the key that sent them.
    ProductEventBy = 64,
    /// Product events and visits that have not been counted yet, by partition.
    PendingAnalytics = 65,
    /// Product events and visits, counted.
    EventCount = 66,
    /// Conversions, by the id that they are recorded by; and by time.
    Conversion = 67,
    /// Who visited and signed up, what they are known by, and who did what when.
    Person = 68,
    /// Conversions that are to be exported, by partition and due time.
    ConversionExport = 69,
    /// The events of an account, in the order in which they were told.
    EventLog = 55,
    /// How many those are.
    EventLogHead = 56,
    /// Webhook endpoints.
    Webhook = 57,
    /// Which webhook endpoints an account has, as a version.
    WebhookSet = 58,
    /// Deliveries of events to endpoints.
    WebhookDelivery = 59,
    /// Attempts of deliveries.
    WebhookDeliveryAttempt = 60,
    /// Deliveries that are to be tried, by partition, endpoint and time.
    WebhookDeliveryDue = 61,
    /// Received emails by their place in the order of arrival.
    ReceivedEmail = 78,
    /// Received emails by id, which is by time.
    ReceivedEmailById = 79,
    /// Bodies of received emails.
    ReceivedBody = 80,
    /// Which received emails share a body.
    ReceivedUse = 81,
    /// The last place that was given to a received email.
    ReceivedHead = 82,
    /// Automations.
    Automation = 70,
    /// Versions of automations.
    AutomationVersion = 71,
    /// Automations by the events that they hear.
    AutomationTrigger = 72,
    /// Runs of automations.
    AutomationRun = 73,
    /// Runs by what they are found by, and how many there are.
    AutomationRunIndex = 74,
    /// Runs that wait for an event, by its name and the person.
    AutomationRunWait = 75,
    /// What runs know, sealed.
    AutomationRunSealed = 76,
    /// What automations have to do, by partition and due time.
    AutomationDue = 77,
    /// What owners are to be mailed, by partition and due time.
    OwnerAlert = 86,
    /// What senders are to be told and have not been yet, by partition and email.
    PendingDsn = 90,
    /// Affiliate programs, one an account.
    Program = 91,
    /// Affiliate programs by their id, and by the key that web pages bring.
    ProgramBy = 92,
    /// Campaigns of affiliate programs.
    Campaign = 93,
    /// Campaigns by name.
    CampaignByName = 94,
    /// Partners.
    Partner = 95,
    /// Partners by what they are listed by.
    PartnerBy = 96,
    /// Partners by their address.
    PartnerByEmail = 97,
    /// Links of partners.
    PartnerLink = 98,
    /// Links by their token.
    PartnerLinkByToken = 99,
    /// Referrals.
    Referral = 100,
    /// Referrals by what they are listed by.
    ReferralBy = 101,
    /// Who has the claim to a person: by address, and by the processor's customer.
    ReferralClaim = 102,
    /// Commissions.
    Commission = 103,
    /// Commissions by what they are listed by, and by the invoice that they are for.
    CommissionBy = 104,
    /// Commissions that wait for the end of their hold, by partition and time.
    CommissionDue = 105,
    /// What the payment processor told of its objects.
    ProcessorState = 106,
    /// What the payment processor told, by the customer whose it is.
    ProcessorStateByCustomer = 107,
    /// Events of the payment processor that came in.
    ProcessorEvent = 108,
    /// Those by what became of them and when they came.
    ProcessorEventBy = 109,
    /// How many paying customers partners have.
    PartnerCustomerCount = 110,
    /// Which links and leads of partners are the latest.
    PartnerLimitGuard = 138,
    /// Corrections of what partners are owed.
    Adjustment = 111,
    /// Payouts.
    Payout = 112,
    /// Payouts by what they are listed by.
    PayoutBy = 113,
    /// Payout runs.
    PayoutRun = 114,
    /// The run that an account's payouts are drafted in.
    OpenPayoutRun = 115,
    /// Partners who are not in a run, and why.
    Skipped = 116,
    /// What is under way with runs, payouts and partners who were deleted, by partition.
    PayoutJob = 117,
    /// The lines that payouts were made of.
    PayoutItem = 118,
    /// Adjustments by what they are found by, and what those of a line come to.
    AdjustmentBy = 119,
    /// Visits by partners' links.
    Visit = 120,
    /// Which visit of a visitor stands, and which of a person.
    VisitBy = 121,
    /// Visits by when they are forgotten.
    VisitEnd = 122,
    /// Clicks on partners' links that have not been counted yet, by partition.
    Click = 123,
    /// Clicks on partners' links, counted.
    ClickCount = 124,
    /// Browsers and networks that partners have used themselves.
    SelfReferralGuard = 125,
    /// What partners have, in sums.
    PartnerBalance = 145,
    /// Whom partners have brought, in sums.
    PartnerReferralCounts = 150,
    /// Back-fills.
    Backfill = 136,
    /// Back-fills that go on, by partition.
    BackfillOpen = 137,
    /// Links that partners enter the portal by, by the hash of what they carry.
    PortalLink = 128,
    /// Which links a partner has, by what they are for.
    PortalLinksOf = 129,
    /// Sessions of partners.
    PortalSession = 130,
    /// Letters to partners that are to be written, by partition and due time.
    PartnerEmail = 131,
    /// Policies of MTA-STS, by domain.
    StsPolicy = 160,
    /// How TLS went with the mail hosts of domains, by day and domain.
    TlsDailyStats = 163,
    /// What others report of how TLS went with domains of ours, by day and domain.
    TlsReportReceived = 164,
    /// What the operator ordered about destinations.
    Destination = 161,
    /// What the operator ordered about many tasks, by partition.
    QueueCommand = 162,
    /// What the operator ordered about pools of source addresses.
    Pool = 165,
    /// Tasks that are worth nothing after a time, by partition and that time.
    Deadline = 166,
    /// Customers of the operator's at the payment processor.
    Payer = 167,
    /// Which of them pay for an account.
    PayersOf = 168,
    /// What holds mail in the queue back.
    QueueHold = 175,
}

impl From<Space> for u8 {
    fn from(space: Space) -> u8 {
        space as u8
    }
}

/// Starts a key in a space.
pub fn key(space: Space) -> KeyBuilder {
    let mut bytes = Vec::with_capacity(KEY_BYTES_TYPICAL);
    bytes.push(space as u8);
    KeyBuilder { bytes }
}

/// Space, account, one id, a time and a bit: most keys fit without growing.
const KEY_BYTES_TYPICAL: usize = 48;

/// A key on its way: parts are added from the left.
#[derive(Debug, Clone)]
#[must_use]
pub struct KeyBuilder {
    bytes: Vec<u8>,
}

impl KeyBuilder {
    /// The tenant: always the first part of a tenant's row.
    pub fn account(self, account: AccountId) -> Self {
        self.id(account.to_bytes())
    }

    /// An id's 16 bytes.
    pub fn id(mut self, id: [u8; 16]) -> Self {
        self.bytes.extend_from_slice(&id);
        self
    }

    /// A fixed number of raw bytes (a hash). The reader must know the number.
    pub fn fixed<const N: usize>(mut self, bytes: [u8; N]) -> Self {
        self.bytes.extend_from_slice(&bytes);
        self
    }

    /// One byte.
    pub fn u8(mut self, number: u8) -> Self {
        self.bytes.push(number);
        self
    }

    /// Two bytes.
    pub fn u16(mut self, number: u16) -> Self {
        self.bytes.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// Four bytes.
    pub fn u32(mut self, number: u32) -> Self {
        self.bytes.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// Eight bytes.
    pub fn u64(mut self, number: u64) -> Self {
        self.bytes.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// Eight bytes, negative numbers first.
    pub fn i64(self, number: i64) -> Self {
        self.u64(number.cast_unsigned() ^ SIGN)
    }

    /// A moment, to the microsecond.
    pub fn time(self, moment: Timestamp) -> Self {
        self.i64(moment.as_microsecond())
    }

    /// A text of any length.
    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// Bytes of any number.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        let mut rest = bytes;
        while let Some(zero) = memchr::memchr(0, rest) {
            let (before, after) = rest.split_at(zero);
            self.bytes.extend_from_slice(before);
            self.bytes.extend_from_slice(&[0, 0xFF]);
            rest = after.get(1..).unwrap_or_default();
        }
        self.bytes.extend_from_slice(rest);
        self.bytes.extend_from_slice(&[0, 0]);
        self
    }

    /// The key.
    #[must_use]
    pub fn build(self) -> Key {
        Bytes::from(self.bytes)
    }

    /// All keys that start with the parts given so far.
    #[must_use]
    pub fn range(self) -> Range<Key> {
        prefix_range(&self.bytes)
    }
}

/// Turns signed order into unsigned order.
const SIGN: u64 = 1 << 63;

/// All keys that start with `prefix` (itself included).
#[must_use]
pub fn prefix_range(prefix: &[u8]) -> Range<Key> {
    let from = Bytes::copy_from_slice(prefix);
    from..prefix_end(prefix)
}

/// The first key after all that start with `prefix`.
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Key {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xFF {
            end.push(last + 1);
            return Bytes::from(end);
        }
    }
    // Nothing but FF: no shorter key is greater, and no key is longer than the limit.
    Bytes::from(vec![0xFF; KEY_BYTES_MAX + 1])
}

/// The first key after `key` itself: where the next page starts, ascending.
#[must_use]
pub fn successor(key: &[u8]) -> Key {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    Bytes::from(next)
}

/// A key that does not have the parts asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a stored key lacks the part `{part}`")]
pub struct KeyDecodeError {
    /// What was asked for.
    pub part: &'static str,
}

/// Takes a key's parts out again, from the left.
#[derive(Debug, Clone, Copy)]
pub struct KeyReader<'a> {
    rest: &'a [u8],
}

impl<'a> KeyReader<'a> {
    /// Starts after the space byte, which must be `space`.
    ///
    /// # Errors
    /// The key is of another space.
    pub fn new(space: Space, key: &'a [u8]) -> Result<Self, KeyDecodeError> {
        match key.split_first() {
            Some((&first, rest)) if first == space as u8 => Ok(Self { rest }),
            _ => Err(KeyDecodeError { part: "space" }),
        }
    }

    /// A fixed number of raw bytes; an id's are 16.
    ///
    /// # Errors
    /// The key ends before.
    pub fn fixed<const N: usize>(&mut self) -> Result<[u8; N], KeyDecodeError> {
        let (part, rest) = self.rest.split_first_chunk::<N>().ok_or(KeyDecodeError { part: "fixed" })?;
        self.rest = rest;
        Ok(*part)
    }

    /// An id's 16 bytes.
    ///
    /// # Errors
    /// The key ends before.
    pub fn id(&mut self) -> Result<[u8; 16], KeyDecodeError> {
        self.fixed()
    }

    /// The tenant.
    ///
    /// # Errors
    /// The key ends before.
    pub fn account(&mut self) -> Result<AccountId, KeyDecodeError> {
        self.id().map(AccountId::from_bytes)
    }

    /// One byte.
    ///
    /// # Errors
    /// The key ends before.
    pub fn u8(&mut self) -> Result<u8, KeyDecodeError> {
        self.fixed().map(u8::from_be_bytes)
    }

    /// Two bytes.
    ///
    /// # Errors
    /// The key ends before.
    pub fn u16(&mut self) -> Result<u16, KeyDecodeError> {
        self.fixed().map(u16::from_be_bytes)
    }

    /// Four bytes.
    ///
    /// # Errors
    /// The key ends before.
    pub fn u32(&mut self) -> Result<u32, KeyDecodeError> {
        self.fixed().map(u32::from_be_bytes)
    }

    /// Eight bytes.
    ///
    /// # Errors
    /// The key ends before.
    pub fn u64(&mut self) -> Result<u64, KeyDecodeError> {
        self.fixed().map(u64::from_be_bytes)
    }

    /// Eight bytes, signed.
    ///
    /// # Errors
    /// The key ends before.
    pub fn i64(&mut self) -> Result<i64, KeyDecodeError> {
        self.u64().map(|number| (number ^ SIGN).cast_signed())
    }

    /// A moment.
    ///
    /// # Errors
    /// The key ends before, or the number is no time.
    pub fn time(&mut self) -> Result<Timestamp, KeyDecodeError> {
        Timestamp::from_microsecond(self.i64()?).map_err(|_| KeyDecodeError { part: "time" })
    }

    /// Bytes of any number.
    ///
    /// # Errors
    /// The part has no end, or a broken escape.
    pub fn bytes(&mut self) -> Result<Vec<u8>, KeyDecodeError> {
        let mut out = Vec::new();
        loop {
            let zero = memchr::memchr(0, self.rest).ok_or(KeyDecodeError { part: "bytes" })?;
            let (before, after) = self.rest.split_at(zero);
            out.extend_from_slice(before);
            match after {
                [0, 0, rest @ ..] => {
                    self.rest = rest;
                    return Ok(out);
                }
                [0, 0xFF, rest @ ..] => {
                    out.push(0);
                    self.rest = rest;
                }
                _ => return Err(KeyDecodeError { part: "bytes" }),
            }
        }
    }

    /// A text of any length.
    ///
    /// # Errors
    /// As [`KeyReader::bytes`], or it is not UTF-8.
    pub fn text(&mut self) -> Result<String, KeyDecodeError> {
        String::from_utf8(self.bytes()?).map_err(|_| KeyDecodeError { part: "text" })
    }

    /// The bytes that are not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Is every part taken?
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Tuple = ([u8; 16], Vec<u8>, i64, u16, String);

    fn build(tuple: &Tuple) -> Key {
        key(Space::Email).id(tuple.0).bytes(&tuple.1).i64(tuple.2).u16(tuple.3).text(&tuple.4).build()
    }

    fn tuple() -> impl Strategy<Value = Tuple> {
        // Few different bytes, so that equal prefixes are common.
        let few = prop_oneof![Just(0u8), Just(1), Just(0xFE), Just(0xFF), any::<u8>()];
        let id = proptest::array::uniform16(prop_oneof![Just(0u8), Just(0xFF)]);
        let text = "[\\x00\\x01a\u{7f}\u{ff}]{0,4}";
        (id, proptest::collection::vec(few, 0..5), -3i64..3, any::<u16>(), text)
    }

    proptest! {
        #[test]
        fn byte_order_is_tuple_order(a in tuple(), b in tuple()) {
            prop_assert_eq!(build(&a).cmp(&build(&b)), a.cmp(&b));
        }

        #[test]
        fn parts_read_back(a in tuple()) {
            let built = build(&a);
            let mut reader = KeyReader::new(Space::Email, &built).unwrap();
            let back = (
                reader.id().unwrap(),
                reader.bytes().unwrap(),
                reader.i64().unwrap(),
                reader.u16().unwrap(),
                reader.text().unwrap(),
            );
            prop_assert_eq!(back, a);
            prop_assert!(reader.is_done());
        }

        #[test]
        fn a_prefix_range_holds_its_keys_and_no_others(
            prefix in proptest::collection::vec(prop_oneof![Just(0u8), Just(0xFF), any::<u8>()], 0..4),
            other in proptest::collection::vec(prop_oneof![Just(0u8), Just(0xFF), any::<u8>()], 0..6),
        ) {
            let range = prefix_range(&prefix);
            prop_assert_eq!(range.contains(&Bytes::from(other.clone())), other.starts_with(&prefix));
        }
    }

    #[test]
    fn a_broken_key_is_an_error() {
        assert!(KeyReader::new(Space::Task, &[Space::Email as u8]).is_err());
        assert!(KeyReader::new(Space::Task, &[]).is_err());
        let mut reader = KeyReader::new(Space::Task, &[Space::Task as u8, b'a', 0, 7]).unwrap();
        assert!(reader.bytes().is_err());
        assert!(reader.u64().is_err());
    }

    #[test]
    fn the_next_page_starts_right_after() {
        let k = key(Space::Task).u8(1).build();
        assert!(successor(&k) > k && successor(&k) < key(Space::Task).u8(1).u8(0).u8(0).build());
    }
}
