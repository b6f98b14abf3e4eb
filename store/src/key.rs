//! Keys: byte strings whose order is the order of the parts they were built from.
//!
//! A key is a space byte (which noun's rows these are), followed by parts. Every tenant's key continues with the
//! account's 16 bytes, so that one account's rows of a space are one range. Parts:
//!
//! ```text
//! u8 u16 u32 u64   big-endian                              numeric order
//! i64, time        big-endian with the sign bit inverted   numeric order
//! id               16 bytes (a time-ordered id)            order of creation
//! text, bytes      00 escaped as 00 FF, terminated by 00 00  byte order, a prefix sorts first
//! ```
//!
//! Fixed-width parts need no terminator and variable ones carry their own, so two different tuples never form the same
//! key. [`KeyReader`] decodes the parts. For prefix ranges, see [`prefix_range`] and [`KeyBuilder::range`].
//!
//! Limit: the engine refuses keys longer than [`crate::engine::KEY_BYTES_MAX`].

use std::ops::{Range, RangeInclusive};

use bytes::Bytes;
use jiff::Timestamp;
use model::id::AccountId;
use thiserror::Error;

use crate::engine::{KEY_BYTES_MAX, Key};

/// Key space: the first byte of every key. A released number is never reused for anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Space {
    /// Metadata of the store as a whole.
    Meta = 1,
    Account = 2,
    /// Accounts by their owner's email address.
    AccountByEmail = 3,
    ApiKey = 4,
    /// API keys by the hash of their secret.
    ApiKeyByHash = 5,
    SmtpCredential = 6,
    /// SMTP credentials by the hash of their secret.
    SmtpCredentialByHash = 7,
    Domain = 8,
    DomainByName = 9,
    /// Number of sending domains of accounts.
    DomainCount = 10,
    /// Verification state of the DNS records of sending domains.
    DomainSetup = 11,
    /// Sending domains by partition and the time of their next check.
    DomainSetupByTime = 12,
    /// Claims to domains that another account holds.
    DomainClaim = 13,
    /// Open claims by domain name.
    DomainClaimByName = 14,
    DnsCredential = 15,
    Email = 16,
    /// Recipients of emails.
    Recipient = 17,
    Attempt = 18,
    /// Bodies of emails.
    Body = 19,
    /// Events, written in the commit that causes them.
    Event = 20,
    /// Tasks by partition and due time.
    Task = 24,
    /// Nodes.
    Node = 25,
    /// Partition leases: the owner of each partition.
    Partition = 26,
    /// Partition hints: queues that the owner must reload, because another node changed something in them.
    Hint = 27,
    Idempotency = 28,
    /// Idempotency keys by time of use.
    IdempotencyByTime = 29,
    /// Outbox: events not dispatched yet, by partition.
    Outbox = 30,
    /// Plan usage of accounts by period.
    Usage = 31,
    /// Scheduled emails by partition and due time.
    ScheduledByTime = 32,
    /// Schedules of scheduled emails: due time and result.
    Schedule = 33,
    /// Suppressions by target.
    Suppression = 38,
    /// Suppressions by id, that is, by time.
    SuppressionById = 39,
    /// Suppressions by reason, source and time.
    SuppressionByTime = 40,
    /// Opt-outs by category and address.
    OptOut = 41,
    /// Opt-outs by category and id, that is, by time.
    OptOutById = 42,
    /// Suppression imports and their lists.
    SuppressionImport = 43,
    /// Open suppression imports.
    SuppressionImportOpen = 44,
    Template = 34,
    TemplateByAlias = 35,
    TemplateByName = 36,
    /// Versions of templates, and bodies of drafts and versions.
    TemplateVersion = 37,
    User = 45,
    /// Users by email address.
    UserByEmail = 46,
    /// Sessions of users.
    Session = 47,
    SignInLink = 48,
    RequestLog = 49,
    /// Time of the last use of credentials.
    LastUsed = 50,
    /// Opens and clicks of emails.
    Tracking = 51,
    /// Email index: emails by term.
    EmailTerm = 52,
    /// The status term under which an email is indexed.
    EmailListed = 53,
    /// Metrics: event counts by hour.
    Metric = 54,
    /// Counted DMARC aggregate reports by domain and day.
    DmarcReport = 84,
    /// Sums of DMARC reports by domain, day and source address.
    DmarcSource = 85,
    ProductEvent = 63,
    /// Product events by name, address, user id and API key.
    ProductEventBy = 64,
    /// Product events and visits not counted yet, by partition.
    PendingAnalytics = 65,
    /// Counts of product events and visits.
    EventCount = 66,
    /// Conversions by id, and by time.
    Conversion = 67,
    /// People for analytics: rows, aliases, and first occurrences of events.
    Person = 68,
    /// Conversions to be exported, by partition and due time.
    ConversionExport = 69,
    /// Event log: an account's events in dispatch order.
    EventLog = 55,
    /// Length of an account's event log.
    EventLogHead = 56,
    Webhook = 57,
    /// Version of an account's set of webhook endpoints.
    WebhookSet = 58,
    WebhookDelivery = 59,
    /// Attempts of webhook deliveries.
    WebhookDeliveryAttempt = 60,
    /// Pending webhook deliveries by partition, endpoint and due time.
    WebhookDeliveryDue = 61,
    /// Received emails by sequence number.
    ReceivedEmail = 78,
    /// Received emails by id, that is, by time.
    ReceivedEmailById = 79,
    /// Bodies of received emails.
    ReceivedBody = 80,
    /// Received emails that share a body.
    ReceivedUse = 81,
    /// The last sequence number assigned to a received email.
    ReceivedHead = 82,
    Automation = 70,
    AutomationVersion = 71,
    /// Automations by the events that trigger them.
    AutomationTrigger = 72,
    AutomationRun = 73,
    /// Runs by indexed fields, and their counts.
    AutomationRunIndex = 74,
    /// Runs that wait for an event, by event name and person.
    AutomationRunWait = 75,
    /// Sealed data of runs.
    AutomationRunSealed = 76,
    /// Due work of automations, by partition and due time.
    AutomationDue = 77,
    /// Owner alerts to be sent, by partition and due time.
    OwnerAlert = 86,
    /// Pending DSNs by partition and email.
    PendingDsn = 90,
    /// Affiliate programs, one per account.
    Program = 91,
    /// Affiliate programs by id, publishable key and portal host.
    ProgramBy = 92,
    /// Campaigns of affiliate programs.
    Campaign = 93,
    /// Campaigns by name.
    CampaignByName = 94,
    Partner = 95,
    /// Index of partners.
    PartnerBy = 96,
    /// Partners by email address.
    PartnerByEmail = 97,
    PartnerLink = 98,
    /// Links by their token.
    PartnerLinkByToken = 99,
    Referral = 100,
    /// Index of referrals.
    ReferralBy = 101,
    /// Claims to a person, by email address and by processor customer.
    ReferralClaim = 102,
    Commission = 103,
    /// Index of commissions, and their unique keys by invoice.
    CommissionBy = 104,
    /// Held commissions by partition and due time.
    CommissionDue = 105,
    /// State of the payment processor's objects.
    ProcessorState = 106,
    /// The processor's invoices by customer.
    ProcessorStateByCustomer = 107,
    /// Received events of the payment processor.
    ProcessorEvent = 108,
    /// Processor events by status and time of receipt.
    ProcessorEventBy = 109,
    /// Number of paying customers of partners.
    PartnerCustomerCount = 110,
    /// Limit guards of partners' links and leads.
    PartnerLimitGuard = 138,
    /// Adjustments of what partners are owed.
    Adjustment = 111,
    Payout = 112,
    /// Index of payouts.
    PayoutBy = 113,
    PayoutRun = 114,
    /// An account's open payout run.
    OpenPayoutRun = 115,
    /// Partners skipped by a run, with the reason.
    Skipped = 116,
    /// Payout jobs by partition.
    PayoutJob = 117,
    /// Commission lines and amounts of payouts.
    PayoutItem = 118,
    /// Index of adjustments, and their total by commission line.
    AdjustmentBy = 119,
    /// Visits by partner links.
    Visit = 120,
    /// The current visit of a visitor and of a person.
    VisitBy = 121,
    /// Visits by expiry.
    VisitEnd = 122,
    /// Clicks on partner links not counted yet, by partition.
    Click = 123,
    /// Counts of clicks on partner links.
    ClickCount = 124,
    /// Browsers and networks that partners used themselves.
    SelfReferralGuard = 125,
    /// Balances of partners.
    PartnerBalance = 145,
    /// Referral counts of partners.
    PartnerReferralCounts = 150,
    Backfill = 136,
    /// Running backfills by partition.
    BackfillOpen = 137,
    /// Portal links by the hash of their secret.
    PortalLink = 128,
    /// Live portal links of a partner by purpose.
    PortalLinksOf = 129,
    /// Portal sessions of partners.
    PortalSession = 130,
    /// Emails to partners to be sent, by partition and due time.
    PartnerEmail = 131,
    /// Cached MTA-STS policies by domain.
    StsPolicy = 160,
    /// TLS session counts by day and recipient domain.
    TlsDailyStats = 163,
    /// Received TLS reports about our domains, by day and domain.
    TlsReportReceived = 164,
    /// The operator's overrides of destinations.
    Destination = 161,
    /// The operator's bulk queue commands, by partition.
    QueueCommand = 162,
    /// The operator's orders about pools of source addresses.
    Pool = 165,
    /// Tasks by partition and deadline.
    Deadline = 166,
    /// The operator's customers at the payment processor.
    Payer = 167,
    /// The paying customers of an account.
    PayersOf = 168,
    /// Holds of the queue.
    QueueHold = 175,
    /// Registered OAuth clients.
    OAuthClient = 180,
    /// Registered OAuth clients by the time at which they are deleted.
    OAuthClientByExpiry = 181,
    /// Grants of users to OAuth clients.
    OAuthGrant = 182,
    /// Access and refresh tokens by expiry and hash.
    OAuthToken = 183,
    /// Authorization codes by expiry and hash.
    AuthorizationCode = 184,
    /// Device authorizations by expiry and hash of the device code.
    DeviceAuthorization = 185,
    /// Device authorizations by user code.
    DeviceUserCode = 186,
    /// Requests that wait for approval, and decided ones.
    Approval = 190,
    /// Pending approvals of an account.
    ApprovalPending = 191,
    /// Approved requests that are being executed, of all accounts.
    ApprovalExecuting = 192,
    /// Approvals by the client's idempotency key.
    ApprovalByKey = 193,
    /// Sends of clients whose policy limits them.
    ClientSends = 194,
    /// Answered API requests that changed something or revealed a secret.
    AuditLog = 195,
    /// Contents of requests that wait for approval, encrypted.
    ApprovalContent = 196,
    /// Approvals by the time at which their content is deleted.
    ApprovalByEnd = 197,
    /// Number of requests of an account that were held on the current day.
    ApprovalCount = 198,
}

impl Space {
    /// Returns whether a key is in this space.
    pub(crate) fn holds(self, key: &[u8]) -> bool {
        key.first() == Some(&(self as u8))
    }
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

/// Space, account, one id, a time and a few bytes: most keys fit without reallocation.
const KEY_BYTES_TYPICAL: usize = 48;

/// Builds a key from left to right.
#[derive(Debug, Clone)]
#[must_use]
pub struct KeyBuilder {
    bytes: Vec<u8>,
}

impl KeyBuilder {
    /// The account: always the first part of a tenant's key.
    pub fn account(self, account: AccountId) -> Self {
        self.id(account.to_bytes())
    }

    /// The 16 bytes of an id.
    pub fn id(mut self, id: [u8; 16]) -> Self {
        self.bytes.extend_from_slice(&id);
        self
    }

    /// Raw bytes of fixed length, such as a hash. The reader needs the length.
    pub fn fixed<const N: usize>(mut self, bytes: [u8; N]) -> Self {
        self.bytes.extend_from_slice(&bytes);
        self
    }

    pub fn u8(mut self, number: u8) -> Self {
        self.bytes.push(number);
        self
    }

    pub fn u16(mut self, number: u16) -> Self {
        self.bytes.extend_from_slice(&number.to_be_bytes());
        self
    }

    pub fn u32(mut self, number: u32) -> Self {
        self.bytes.extend_from_slice(&number.to_be_bytes());
        self
    }

    pub fn u64(mut self, number: u64) -> Self {
        self.bytes.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// Eight bytes that sort negative numbers first.
    pub fn i64(self, number: i64) -> Self {
        self.u64(number.cast_unsigned() ^ SIGN)
    }

    /// A time, with microsecond precision.
    pub fn time(self, timestamp: Timestamp) -> Self {
        self.i64(timestamp.as_microsecond())
    }

    /// A text of any length.
    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// Bytes of any length.
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

    pub fn build(self) -> Key {
        Bytes::from(self.bytes)
    }

    /// The range of all keys that start with the parts so far.
    pub fn range(self) -> Range<Key> {
        prefix_range(&self.bytes)
    }

    /// The part of [`Self::range`] before the id that follows; all of it without one.
    pub fn range_before(self, before: Option<[u8; 16]>) -> Range<Key> {
        let range = self.range();
        match before {
            Some(id) => range.start.clone()..Bytes::from([&range.start[..], &id].concat()),
            None => range,
        }
    }

    /// The part of [`Self::range`] after the key with the id that follows; all of it without one.
    pub fn range_after(self, after: Option<[u8; 16]>) -> Range<Key> {
        let range = self.range();
        match after {
            Some(id) => successor(&[&range.start[..], &id].concat())..range.end,
            None => range,
        }
    }
}

/// The sign bit: inverting it turns signed into unsigned order.
const SIGN: u64 = 1 << 63;

/// The range of all keys that start with `prefix`, including `prefix` itself.
pub fn prefix_range(prefix: &[u8]) -> Range<Key> {
    let from = Bytes::copy_from_slice(prefix);
    from..prefix_end(prefix)
}

/// The first key after all keys that start with `prefix`.
pub fn prefix_end(prefix: &[u8]) -> Key {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xFF {
            end.push(last + 1);
            return Bytes::from(end);
        }
    }
    // Only FF bytes: no shorter key is greater, and no key is longer than the limit.
    Bytes::from(vec![0xFF; KEY_BYTES_MAX + 1])
}

/// The range of all keys of these partitions, for spaces whose keys start with the partition.
pub fn partitions_range(space: Space, partitions: &RangeInclusive<u16>) -> Range<Key> {
    key(space).u16(*partitions.start()).build()..key(space).u16(*partitions.end()).range().end
}

/// The time in a key that starts with partition and time.
pub(crate) fn read_time(space: Space, key: &[u8]) -> Result<Timestamp, KeyDecodeError> {
    let mut reader = KeyReader::new(space, key)?;
    reader.u16()?;
    reader.time()
}

/// The first key after `key`: the start of the next page of an ascending scan.
pub fn successor(key: &[u8]) -> Key {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    Bytes::from(next)
}

/// A stored key lacks an expected part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a stored key lacks the part `{part}`")]
pub struct KeyDecodeError {
    /// Type of the missing part.
    pub part: &'static str,
}

/// Decodes a key's parts from left to right.
#[derive(Debug, Clone, Copy)]
pub struct KeyReader<'a> {
    rest: &'a [u8],
}

impl<'a> KeyReader<'a> {
    /// Starts after the space byte, which must be `space`.
    ///
    /// # Errors
    /// The key belongs to another space.
    pub fn new(space: Space, key: &'a [u8]) -> Result<Self, KeyDecodeError> {
        match key.split_first() {
            Some((&first, rest)) if first == space as u8 => Ok(Self { rest }),
            _ => Err(KeyDecodeError { part: "space" }),
        }
    }

    /// Raw bytes of fixed length.
    pub fn fixed<const N: usize>(&mut self) -> Result<[u8; N], KeyDecodeError> {
        let (part, rest) = self.rest.split_first_chunk::<N>().ok_or(KeyDecodeError { part: "fixed" })?;
        self.rest = rest;
        Ok(*part)
    }

    /// The 16 bytes of an id.
    pub fn id(&mut self) -> Result<[u8; 16], KeyDecodeError> {
        self.fixed()
    }

    /// The account.
    pub fn account(&mut self) -> Result<AccountId, KeyDecodeError> {
        self.id().map(AccountId::from_bytes)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, KeyDecodeError> {
        self.fixed().map(u8::from_be_bytes)
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Result<u16, KeyDecodeError> {
        self.fixed().map(u16::from_be_bytes)
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32, KeyDecodeError> {
        self.fixed().map(u32::from_be_bytes)
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Result<u64, KeyDecodeError> {
        self.fixed().map(u64::from_be_bytes)
    }

    /// Eight bytes, signed.
    pub fn i64(&mut self) -> Result<i64, KeyDecodeError> {
        self.u64().map(|number| (number ^ SIGN).cast_signed())
    }

    /// A time.
    ///
    /// # Errors
    /// The key is too short, or the number is out of range.
    pub fn time(&mut self) -> Result<Timestamp, KeyDecodeError> {
        Timestamp::from_microsecond(self.i64()?).map_err(|_| KeyDecodeError { part: "time" })
    }

    /// Bytes of any length.
    ///
    /// # Errors
    /// The part is not terminated, or has an invalid escape.
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
    pub fn text(&mut self) -> Result<String, KeyDecodeError> {
        String::from_utf8(self.bytes()?).map_err(|_| KeyDecodeError { part: "text" })
    }

    /// The bytes not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns whether all parts were read.
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
        fn parts_round_trip(a in tuple()) {
            let built = build(&a);
            let mut reader = KeyReader::new(Space::Email, &built).unwrap();
            let decoded = (
                reader.id().unwrap(),
                reader.bytes().unwrap(),
                reader.i64().unwrap(),
                reader.u16().unwrap(),
                reader.text().unwrap(),
            );
            prop_assert_eq!(decoded, a);
            prop_assert!(reader.is_done());
        }

        #[test]
        fn a_prefix_range_contains_exactly_its_keys(
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
