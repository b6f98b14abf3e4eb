# Generated from sdk/operations.json by sdk/generate; do not edit.

"""The resources of the API for `AsyncPostrider`."""
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, AsyncIterator, Optional, Sequence, Union, overload

from . import _operations
from .webhooks import construct_event, generate_test_header

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import types
    from ._pages import AsyncList
    from ._async import AsyncClient
    from .types import StreamedEvent


class AsyncEmails:
    """Emails that were sent or are waiting."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    @cached_property
    def events(self) -> AsyncEmailsEvents:
        """Events of an email."""
        return AsyncEmailsEvents(self._client)

    @cached_property
    def attempts(self) -> AsyncEmailsAttempts:
        """Delivery attempts of an email."""
        return AsyncEmailsAttempts(self._client)

    @cached_property
    def attachments(self) -> AsyncEmailsAttachments:
        """Attachments of an email."""
        return AsyncEmailsAttachments(self._client)

    async def send(self, params: types.SendEmailParams, **options: Unpack[types.IdempotentOptions]) -> types.Sent:
        """Send an email.

        A sending-only API key is sufficient; a key restricted to a domain can access that domain's data.
        """
        return await self._client._call(_operations.SEND_EMAIL, (), params, options)

    @overload
    async def send_batch(self, params: types.SendBatchParams, **options: Unpack[types.IdempotentOptions]) -> types.SendBatchResponse: ...

    @overload
    async def send_batch(self, **fields: Unpack[types.SendBatchFields]) -> types.SendBatchResponse: ...

    async def send_batch(self, params: Any = None, **fields: Any) -> types.SendBatchResponse:
        """Send up to 100 emails in one request.

        A sending-only API key is sufficient; a key restricted to a domain can access that domain's data.
        """
        return await self._client._call(_operations.SEND_BATCH, (), params, fields)

    def list(self, params: Optional[types.ListEmailsParams] = None, **fields: Unpack[types.ListEmailsFields]) -> AsyncList[types.Email]:
        """List emails, newest first; all given filters must match.

        A sending-only API key is sufficient for what it sent; a key restricted to a domain can access that domain's
        data.
        """
        return self._client._list(_operations.LIST_EMAILS, (), params, fields)

    async def metrics(self, params: Optional[types.GetEmailMetricsParams] = None, **fields: Unpack[types.GetEmailMetricsFields]) -> types.GetEmailMetricsResponse:
        """Get email metrics by hour or day, optionally by dimension.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_EMAIL_METRICS, (), params, fields)

    async def get(self, id: str, **options: Unpack[types.CallOptions]) -> types.GetEmailResponse:
        """Get an email.

        A sending-only API key is sufficient for what it sent; a key restricted to a domain can access that domain's
        data.
        """
        return await self._client._call(_operations.GET_EMAIL, (id,), None, options)

    async def update(self, id: str, params: Optional[types.UpdateEmailParams] = None, **fields: Unpack[types.UpdateEmailFields]) -> types.UpdateEmailResponse:
        """Reschedule or cancel a scheduled email.

        A sending-only API key is sufficient for what it sent; a key restricted to a domain can access that domain's
        data.
        """
        return await self._client._call(_operations.UPDATE_EMAIL, (id,), params, fields)

    async def cancel(self, id: str, **options: Unpack[types.CallOptions]) -> types.CancelEmailResponse:
        """Cancel a scheduled email.

        A sending-only API key is sufficient for what it sent; a key restricted to a domain can access that domain's
        data.
        """
        return await self._client._call(_operations.CANCEL_EMAIL, (id,), None, options)

    async def resend(self, id: str, params: Optional[types.ResendEmailParams] = None, **fields: Unpack[types.ResendEmailFields]) -> types.Sent:
        """Resend a stored email, with its attachments on request.

        A sending-only API key is sufficient for what it sent; a key restricted to a domain can access that domain's
        data.
        """
        return await self._client._call(_operations.RESEND_EMAIL, (id,), params, fields)

    @overload
    async def test_event(self, params: types.TestEventParams, **options: Unpack[types.CallOptions]) -> types.TestEventResponse: ...

    @overload
    async def test_event(self, **fields: Unpack[types.TestEventFields]) -> types.TestEventResponse: ...

    async def test_event(self, params: Any = None, **fields: Any) -> types.TestEventResponse:
        """Send a test event to webhooks.

        Requires an API key with full access; a key restricted to a domain can access that domain's data.
        """
        return await self._client._call(_operations.TEST_EVENT, (), params, fields)

    async def raw(self, id: str, **options: Unpack[types.CallOptions]) -> bytes:
        """Get the message as it was sent.

        Requires an API key with full access; a key restricted to a domain can access that domain's data.
        """
        return await self._client._call(_operations.GET_EMAIL_RAW, (id,), None, options)



class AsyncEmailsEvents:
    """Events of an email."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, id: str, params: Optional[types.ListEmailEventsParams] = None, **fields: Unpack[types.ListEmailEventsFields]) -> AsyncList[types.EmailEvent]:
        """List the events of an email, newest first.

        A sending-only API key is sufficient for what it sent; a key restricted to a domain can access that domain's
        data.
        """
        return self._client._list(_operations.LIST_EMAIL_EVENTS, (id,), params, fields)



class AsyncEmailsAttempts:
    """Delivery attempts of an email."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, id: str, params: Optional[types.ListEmailAttemptsParams] = None, **fields: Unpack[types.ListEmailAttemptsFields]) -> AsyncList[types.Attempt]:
        """List the delivery attempts of an email, newest first.

        A sending-only API key is sufficient for what it sent; a key restricted to a domain can access that domain's
        data.
        """
        return self._client._list(_operations.LIST_EMAIL_ATTEMPTS, (id,), params, fields)



class AsyncEmailsAttachments:
    """Attachments of an email."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def get(self, id: str, att_id: str, **options: Unpack[types.CallOptions]) -> bytes:
        """Get an attachment of an email.

        Requires an API key with full access; a key restricted to a domain can access that domain's data.
        """
        return await self._client._call(_operations.GET_EMAIL_ATTACHMENT, (id, att_id,), None, options)



class AsyncAccount:
    """The account that the API key belongs to."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def get(self, **options: Unpack[types.CallOptions]) -> types.Account:
        """Get the account, its limits and its usage.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_ACCOUNT, (), None, options)



class AsyncLogs:
    """Log of API requests."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, params: Optional[types.ListLogsParams] = None, **fields: Unpack[types.ListLogsFields]) -> AsyncList[types.LoggedRequest]:
        """List API requests of the last 30 days, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_LOGS, (), params, fields)

    async def get(self, id: str, **options: Unpack[types.CallOptions]) -> types.GetLogResponse:
        """Get an API request.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_LOG, (id,), None, options)



class AsyncApiKeys:
    """API keys."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    @overload
    async def create(self, params: types.CreateApiKeyParams, **options: Unpack[types.CallOptions]) -> types.CreateApiKeyResponse: ...

    @overload
    async def create(self, **fields: Unpack[types.CreateApiKeyFields]) -> types.CreateApiKeyResponse: ...

    async def create(self, params: Any = None, **fields: Any) -> types.CreateApiKeyResponse:
        """Create an API key; its secret is shown once.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CREATE_API_KEY, (), params, fields)

    def list(self, params: Optional[types.ListApiKeysParams] = None, **fields: Unpack[types.ListApiKeysFields]) -> AsyncList[types.ApiKey]:
        """List API keys, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_API_KEYS, (), params, fields)

    async def get(self, id: str, **options: Unpack[types.CallOptions]) -> types.GetApiKeyResponse:
        """Get an API key.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_API_KEY, (id,), None, options)

    async def update(self, id: str, params: Optional[types.UpdateApiKeyParams] = None, **fields: Unpack[types.UpdateApiKeyFields]) -> types.UpdateApiKeyResponse:
        """Rename, enable or disable an API key, or set its allowed addresses.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.UPDATE_API_KEY, (id,), params, fields)

    async def delete(self, id: str, **options: Unpack[types.CallOptions]) -> types.Done:
        """Delete an API key.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.DELETE_API_KEY, (id,), None, options)

    async def rotate(self, id: str, params: Optional[types.RotateApiKeyParams] = None, **fields: Unpack[types.RotateApiKeyFields]) -> types.RotateApiKeyResponse:
        """Rotate an API key's secret; the previous one stays valid for a grace period.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.ROTATE_API_KEY, (id,), params, fields)



class AsyncSmtpCredentials:
    """Credentials for sending by SMTP."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    @overload
    async def create(self, params: types.CreateSmtpCredentialParams, **options: Unpack[types.CallOptions]) -> types.CreateSmtpCredentialResponse: ...

    @overload
    async def create(self, **fields: Unpack[types.CreateSmtpCredentialFields]) -> types.CreateSmtpCredentialResponse: ...

    async def create(self, params: Any = None, **fields: Any) -> types.CreateSmtpCredentialResponse:
        """Create an SMTP credential; its password is shown once.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CREATE_SMTP_CREDENTIAL, (), params, fields)

    def list(self, params: Optional[types.ListSmtpCredentialsParams] = None, **fields: Unpack[types.ListSmtpCredentialsFields]) -> AsyncList[types.SmtpCredential]:
        """List SMTP credentials, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_SMTP_CREDENTIALS, (), params, fields)

    async def get(self, id: str, **options: Unpack[types.CallOptions]) -> types.GetSmtpCredentialResponse:
        """Get an SMTP credential.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_SMTP_CREDENTIAL, (id,), None, options)

    async def update(self, id: str, params: Optional[types.UpdateSmtpCredentialParams] = None, **fields: Unpack[types.UpdateSmtpCredentialFields]) -> types.UpdateSmtpCredentialResponse:
        """Rename, enable or disable an SMTP credential, or set its allowed addresses.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.UPDATE_SMTP_CREDENTIAL, (id,), params, fields)

    async def delete(self, id: str, **options: Unpack[types.CallOptions]) -> types.Done:
        """Delete an SMTP credential.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.DELETE_SMTP_CREDENTIAL, (id,), None, options)

    async def rotate(self, id: str, params: Optional[types.RotateSmtpCredentialParams] = None, **fields: Unpack[types.RotateSmtpCredentialFields]) -> types.RotateSmtpCredentialResponse:
        """Rotate an SMTP credential's password; the previous one stays valid for a grace period.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.ROTATE_SMTP_CREDENTIAL, (id,), params, fields)



class AsyncDomains:
    """Sending and receiving domains."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    @cached_property
    def dkim(self) -> AsyncDomainsDkim:
        """Rotation of a domain's DKIM key."""
        return AsyncDomainsDkim(self._client)

    @cached_property
    def claims(self) -> AsyncDomainsClaims:
        """Claims on domains that another account has."""
        return AsyncDomainsClaims(self._client)

    @cached_property
    def dns(self) -> AsyncDomainsDns:
        """Publishing of a domain's DNS records."""
        return AsyncDomainsDns(self._client)

    @overload
    async def create(self, params: types.CreateDomainParams, **options: Unpack[types.CallOptions]) -> types.CreateDomainResponse: ...

    @overload
    async def create(self, **fields: Unpack[types.CreateDomainFields]) -> types.CreateDomainResponse: ...

    async def create(self, params: Any = None, **fields: Any) -> types.CreateDomainResponse:
        """Add a domain, and get the records to publish.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CREATE_DOMAIN, (), params, fields)

    def list(self, params: Optional[types.ListDomainsParams] = None, **fields: Unpack[types.ListDomainsFields]) -> AsyncList[types.Domain]:
        """List domains, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_DOMAINS, (), params, fields)

    async def get(self, id_or_name: str, **options: Unpack[types.CallOptions]) -> types.OneDomain:
        """Get a domain and the status of its records.

        Requires an API key with full access; a key restricted to a domain can access that domain's data.
        """
        return await self._client._call(_operations.GET_DOMAIN, (id_or_name,), None, options)

    async def update(self, id_or_name: str, params: Optional[types.UpdateDomainParams] = None, **fields: Unpack[types.UpdateDomainFields]) -> types.UpdateDomainResponse:
        """Update a domain's settings.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.UPDATE_DOMAIN, (id_or_name,), params, fields)

    async def delete(self, id_or_name: str, params: Optional[types.DeleteDomainParams] = None, **fields: Unpack[types.DeleteDomainFields]) -> types.Done:
        """Delete a domain.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.DELETE_DOMAIN, (id_or_name,), params, fields)

    async def zone_file(self, id_or_name: str, **options: Unpack[types.CallOptions]) -> str:
        """Get the records as a zone file.

        Requires an API key with full access; a key restricted to a domain can access that domain's data.
        """
        return await self._client._call(_operations.GET_DOMAIN_ZONE_FILE, (id_or_name,), None, options)

    async def dmarc(self, id_or_name: str, params: Optional[types.GetDomainDmarcParams] = None, **fields: Unpack[types.GetDomainDmarcFields]) -> types.GetDomainDmarcResponse:
        """Get a summary of the DMARC reports about a domain.

        Requires an API key with full access; a key restricted to a domain can access that domain's data.
        """
        return await self._client._call(_operations.GET_DOMAIN_DMARC, (id_or_name,), params, fields)

    async def verify(self, id_or_name: str, **options: Unpack[types.CallOptions]) -> types.VerifiedDomain:
        """Verify a domain's records now.

        Requires an API key with full access; a key restricted to a domain can access that domain's data.
        """
        return await self._client._call(_operations.VERIFY_DOMAIN, (id_or_name,), None, options)



class AsyncDomainsDkim:
    """Rotation of a domain's DKIM key."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def rotate(self, id_or_name: str, **options: Unpack[types.CallOptions]) -> types.OneDomain:
        """Rotate the DKIM keys.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.ROTATE_DOMAIN_DKIM, (id_or_name,), None, options)

    async def cancel_rotation(self, id_or_name: str, **options: Unpack[types.CallOptions]) -> types.OneDomain:
        """Cancel a rotation whose keys do not sign yet.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CANCEL_DOMAIN_DKIM_ROTATION, (id_or_name,), None, options)



class AsyncDomainsClaims:
    """Claims on domains that another account has."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    @overload
    async def create(self, params: types.CreateDomainClaimParams, **options: Unpack[types.CallOptions]) -> types.CreateDomainClaimResponse: ...

    @overload
    async def create(self, **fields: Unpack[types.CreateDomainClaimFields]) -> types.CreateDomainClaimResponse: ...

    async def create(self, params: Any = None, **fields: Any) -> types.CreateDomainClaimResponse:
        """Claim a domain of another account.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CREATE_DOMAIN_CLAIM, (), params, fields)

    def list(self, params: Optional[types.ListDomainClaimsParams] = None, **fields: Unpack[types.ListDomainClaimsFields]) -> AsyncList[types.DomainClaim]:
        """List claims, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_DOMAIN_CLAIMS, (), params, fields)

    async def get(self, id: str, **options: Unpack[types.CallOptions]) -> types.OneDomainClaim:
        """Get a claim.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_DOMAIN_CLAIM, (id,), None, options)

    async def cancel(self, id: str, **options: Unpack[types.CallOptions]) -> types.OneDomainClaim:
        """Cancel a claim.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CANCEL_DOMAIN_CLAIM, (id,), None, options)

    async def verify(self, id: str, **options: Unpack[types.CallOptions]) -> types.OneDomainClaim:
        """Verify a claim's record now.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.VERIFY_DOMAIN_CLAIM, (id,), None, options)



class AsyncDomainsDns:
    """Publishing of a domain's DNS records."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    @overload
    async def apply(self, id_or_name: str, params: types.ApplyDomainDnsParams, **options: Unpack[types.CallOptions]) -> types.ApplyDomainDnsResponse: ...

    @overload
    async def apply(self, id_or_name: str, **fields: Unpack[types.ApplyDomainDnsFields]) -> types.ApplyDomainDnsResponse: ...

    async def apply(self, id_or_name: str, params: Any = None, **fields: Any) -> types.ApplyDomainDnsResponse:
        """Publish the records at a DNS provider.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.APPLY_DOMAIN_DNS, (id_or_name,), params, fields)

    async def connect(self, id_or_name: str, **options: Unpack[types.CallOptions]) -> types.ConnectDns:
        """Get the URL of the DNS provider's page where the records are approved.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CONNECT_DOMAIN_DNS, (id_or_name,), None, options)



class AsyncDnsCredentials:
    """Saved credentials of DNS providers."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def list(self, **options: Unpack[types.CallOptions]) -> types.SavedDnsCredentialsList:
        """List the DNS providers with saved credentials.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.LIST_DNS_CREDENTIALS, (), None, options)

    @overload
    async def save(self, provider: str, params: types.SaveDnsCredentialsParams, **options: Unpack[types.CallOptions]) -> types.SaveDnsCredentialsResponse: ...

    @overload
    async def save(self, provider: str, **fields: Unpack[types.SaveDnsCredentialsFields]) -> types.SaveDnsCredentialsResponse: ...

    async def save(self, provider: str, params: Any = None, **fields: Any) -> types.SaveDnsCredentialsResponse:
        """Save credentials for a DNS provider.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.SAVE_DNS_CREDENTIALS, (provider,), params, fields)

    async def delete(self, provider: str, **options: Unpack[types.CallOptions]) -> types.Done:
        """Delete the credentials for a DNS provider.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.DELETE_DNS_CREDENTIALS, (provider,), None, options)



class AsyncSuppressions:
    """Addresses that get no email."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, params: Optional[types.ListSuppressionsParams] = None, **fields: Unpack[types.ListSuppressionsFields]) -> AsyncList[types.Suppression]:
        """List suppressions, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_SUPPRESSIONS, (), params, fields)

    async def create(self, params: Optional[types.CreateSuppressionParams] = None, **fields: Unpack[types.CreateSuppressionFields]) -> types.CreateSuppressionResponse:
        """Create suppressions.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CREATE_SUPPRESSION, (), params, fields)

    @overload
    async def check(self, params: types.CheckSuppressionsParams, **options: Unpack[types.CallOptions]) -> types.CheckSuppressionsResponse: ...

    @overload
    async def check(self, **fields: Unpack[types.CheckSuppressionsFields]) -> types.CheckSuppressionsResponse: ...

    async def check(self, params: Any = None, **fields: Any) -> types.CheckSuppressionsResponse:
        """Check whether addresses are suppressed.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CHECK_SUPPRESSIONS, (), params, fields)

    @overload
    async def import_(self, params: Union[types.ImportSuppressionsParams, str, bytes], **options: Unpack[types.CallOptions]) -> types.ImportSuppressionsResponse: ...

    @overload
    async def import_(self, **fields: Unpack[types.ImportSuppressionsFields]) -> types.ImportSuppressionsResponse: ...

    async def import_(self, params: Any = None, **fields: Any) -> types.ImportSuppressionsResponse:
        """Import suppressions from CSV.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.IMPORT_SUPPRESSIONS, (), params, fields)

    @overload
    async def dry_run_import(self, params: Union[types.DryRunSuppressionImportParams, str, bytes], **options: Unpack[types.CallOptions]) -> types.DryRunSuppressionImportResponse: ...

    @overload
    async def dry_run_import(self, **fields: Unpack[types.DryRunSuppressionImportFields]) -> types.DryRunSuppressionImportResponse: ...

    async def dry_run_import(self, params: Any = None, **fields: Any) -> types.DryRunSuppressionImportResponse:
        """Show what an import of suppressions would do.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.DRY_RUN_SUPPRESSION_IMPORT, (), params, fields)

    def list_imports(self, params: Optional[types.ListSuppressionImportsParams] = None, **fields: Unpack[types.ListSuppressionImportsFields]) -> AsyncList[types.SuppressionImport]:
        """List imports, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_SUPPRESSION_IMPORTS, (), params, fields)

    async def get_import(self, id: str, **options: Unpack[types.CallOptions]) -> types.OneImport:
        """Get the progress of an import.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_SUPPRESSION_IMPORT, (id,), None, options)

    async def export(self, params: Optional[types.ExportSuppressionsParams] = None, **fields: Unpack[types.ExportSuppressionsFields]) -> str:
        """Export suppressions as CSV.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.EXPORT_SUPPRESSIONS, (), params, fields)

    async def get(self, id_or_email: str, **options: Unpack[types.CallOptions]) -> types.OneSuppression:
        """Get a suppression.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_SUPPRESSION, (id_or_email,), None, options)

    async def delete(self, id_or_email: str, params: Optional[types.DeleteSuppressionParams] = None, **fields: Unpack[types.DeleteSuppressionFields]) -> types.DeleteSuppressionResponse:
        """Delete a suppression.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.DELETE_SUPPRESSION, (id_or_email,), params, fields)



class AsyncCategoryOptOuts:
    """People who do not want a category of email."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, params: Optional[types.ListCategoryOptOutsParams] = None, **fields: Unpack[types.ListCategoryOptOutsFields]) -> AsyncList[types.CategoryOptOut]:
        """List opt-outs, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_CATEGORY_OPT_OUTS, (), params, fields)

    @overload
    async def create(self, params: types.CreateCategoryOptOutParams, **options: Unpack[types.CallOptions]) -> types.CreateCategoryOptOutResponse: ...

    @overload
    async def create(self, **fields: Unpack[types.CreateCategoryOptOutFields]) -> types.CreateCategoryOptOutResponse: ...

    async def create(self, params: Any = None, **fields: Any) -> types.CreateCategoryOptOutResponse:
        """Opt an address out of a category.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CREATE_CATEGORY_OPT_OUT, (), params, fields)

    async def delete(self, id: str, **options: Unpack[types.CallOptions]) -> types.Done:
        """Delete an opt-out.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.DELETE_CATEGORY_OPT_OUT, (id,), None, options)



class AsyncTemplates:
    """Templates of emails."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    @cached_property
    def versions(self) -> AsyncTemplatesVersions:
        """Published versions of a template."""
        return AsyncTemplatesVersions(self._client)

    async def create(self, params: Optional[types.CreateTemplateParams] = None, **fields: Unpack[types.CreateTemplateFields]) -> types.CreateTemplateResponse:
        """Create a template.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CREATE_TEMPLATE, (), params, fields)

    def list(self, params: Optional[types.ListTemplatesParams] = None, **fields: Unpack[types.ListTemplatesFields]) -> AsyncList[types.Template]:
        """List templates, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_TEMPLATES, (), params, fields)

    async def get(self, id_or_alias: str, **options: Unpack[types.CallOptions]) -> types.GetTemplateResponse:
        """Get a template.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_TEMPLATE, (id_or_alias,), None, options)

    async def update(self, id_or_alias: str, params: Optional[types.UpdateTemplateParams] = None, **fields: Unpack[types.UpdateTemplateFields]) -> types.UpdateTemplateResponse:
        """Update the draft of a template.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.UPDATE_TEMPLATE, (id_or_alias,), params, fields)

    async def delete(self, id_or_alias: str, **options: Unpack[types.CallOptions]) -> types.Done:
        """Delete a template and its versions.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.DELETE_TEMPLATE, (id_or_alias,), None, options)

    async def publish(self, id_or_alias: str, params: Optional[types.PublishTemplateParams] = None, **fields: Unpack[types.PublishTemplateFields]) -> types.PublishTemplateResponse:
        """Publish the draft as a new version.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.PUBLISH_TEMPLATE, (id_or_alias,), params, fields)

    @overload
    async def roll_back(self, id_or_alias: str, params: types.RollBackTemplateParams, **options: Unpack[types.CallOptions]) -> types.RollBackTemplateResponse: ...

    @overload
    async def roll_back(self, id_or_alias: str, **fields: Unpack[types.RollBackTemplateFields]) -> types.RollBackTemplateResponse: ...

    async def roll_back(self, id_or_alias: str, params: Any = None, **fields: Any) -> types.RollBackTemplateResponse:
        """Publish a copy of an earlier version.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.ROLL_BACK_TEMPLATE, (id_or_alias,), params, fields)

    async def preview(self, id_or_alias: str, params: Optional[types.PreviewTemplateParams] = None, **fields: Unpack[types.PreviewTemplateFields]) -> types.TemplatePreview:
        """Render a template without sending it.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.PREVIEW_TEMPLATE, (id_or_alias,), params, fields)

    async def test_send(self, id_or_alias: str, params: types.TestTemplateParams, **options: Unpack[types.CallOptions]) -> types.Sent:
        """Send a test email from a template.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.TEST_TEMPLATE, (id_or_alias,), params, options)

    async def duplicate(self, id_or_alias: str, params: Optional[types.DuplicateTemplateParams] = None, **fields: Unpack[types.DuplicateTemplateFields]) -> types.DuplicateTemplateResponse:
        """Copy the draft into a new template.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.DUPLICATE_TEMPLATE, (id_or_alias,), params, fields)



class AsyncTemplatesVersions:
    """Published versions of a template."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, id_or_alias: str, params: Optional[types.ListTemplateVersionsParams] = None, **fields: Unpack[types.ListTemplateVersionsFields]) -> AsyncList[types.TemplateVersion]:
        """List versions, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_TEMPLATE_VERSIONS, (id_or_alias,), params, fields)

    async def get(self, id_or_alias: str, number: str, **options: Unpack[types.CallOptions]) -> types.GetTemplateVersionResponse:
        """Get a version.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_TEMPLATE_VERSION, (id_or_alias, number,), None, options)



class AsyncEvents:
    """Product events: what people did in your product."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def send(self, params: Optional[types.SendEventParams] = None, **fields: Unpack[types.SendEventFields]) -> types.SendEventResponse:
        """Send a product event.

        A sending-only API key is sufficient; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.SEND_EVENT, (), params, fields)

    def list(self, params: Optional[types.ListEventsParams] = None, **fields: Unpack[types.ListEventsFields]) -> AsyncList[types.ProductEvent]:
        """List product events, newest first.

        A sending-only API key is sufficient for what it sent; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_EVENTS, (), params, fields)

    async def counts(self, params: Optional[types.CountEventsParams] = None, **fields: Unpack[types.CountEventsFields]) -> types.EventCounts:
        """Get product event counts by hour or day.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.COUNT_EVENTS, (), params, fields)

    async def get(self, id: str, **options: Unpack[types.CallOptions]) -> types.OneProductEvent:
        """Get a product event.

        A sending-only API key is sufficient for what it sent; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_EVENT, (id,), None, options)



class AsyncFunnels:
    """Funnels over product events."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def get(self, params: types.GetFunnelParams, **options: Unpack[types.CallOptions]) -> types.GetFunnelResponse:
        """Get a funnel: how many people did a sequence of steps.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_FUNNEL, (), params, options)



class AsyncConversions:
    """Conversions."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, params: Optional[types.ListConversionsParams] = None, **fields: Unpack[types.ListConversionsFields]) -> AsyncList[types.Conversion]:
        """List sign-ups and subscriptions, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_CONVERSIONS, (), params, fields)



class AsyncVisits:
    """Visits of the website."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def counts(self, params: Optional[types.CountVisitsParams] = None, **fields: Unpack[types.CountVisitsFields]) -> types.VisitCounts:
        """Count visits and conversions by day and source.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.COUNT_VISITS, (), params, fields)



class AsyncWebhooks:
    """Webhooks."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    @cached_property
    def deliveries(self) -> AsyncWebhooksDeliveries:
        """Deliveries to a webhook."""
        return AsyncWebhooksDeliveries(self._client)

    @overload
    async def create(self, params: types.CreateWebhookParams, **options: Unpack[types.CallOptions]) -> types.CreateWebhookResponse: ...

    @overload
    async def create(self, **fields: Unpack[types.CreateWebhookFields]) -> types.CreateWebhookResponse: ...

    async def create(self, params: Any = None, **fields: Any) -> types.CreateWebhookResponse:
        """Create a webhook endpoint (its secret is shown once).

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CREATE_WEBHOOK, (), params, fields)

    def list(self, params: Optional[types.ListWebhooksParams] = None, **fields: Unpack[types.ListWebhooksFields]) -> AsyncList[types.Webhook]:
        """List webhook endpoints, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_WEBHOOKS, (), params, fields)

    async def get(self, id: str, **options: Unpack[types.CallOptions]) -> types.OneWebhook:
        """Get a webhook endpoint.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_WEBHOOK, (id,), None, options)

    async def update(self, id: str, params: Optional[types.UpdateWebhookParams] = None, **fields: Unpack[types.UpdateWebhookFields]) -> types.UpdateWebhookResponse:
        """Update a webhook endpoint.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.UPDATE_WEBHOOK, (id,), params, fields)

    async def delete(self, id: str, **options: Unpack[types.CallOptions]) -> types.Done:
        """Delete a webhook endpoint.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.DELETE_WEBHOOK, (id,), None, options)

    async def rotate_secret(self, id: str, params: Optional[types.RotateWebhookSecretParams] = None, **fields: Unpack[types.RotateWebhookSecretFields]) -> types.RotateWebhookSecretResponse:
        """Rotate the secret of a webhook endpoint.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.ROTATE_WEBHOOK_SECRET, (id,), params, fields)

    @overload
    async def test(self, id: str, params: types.TestWebhookParams, **options: Unpack[types.CallOptions]) -> types.TestWebhookResponse: ...

    @overload
    async def test(self, id: str, **fields: Unpack[types.TestWebhookFields]) -> types.TestWebhookResponse: ...

    async def test(self, id: str, params: Any = None, **fields: Any) -> types.TestWebhookResponse:
        """Send a test event to a webhook endpoint.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.TEST_WEBHOOK, (id,), params, fields)

    @overload
    async def replay(self, id: str, params: types.ReplayWebhookDeliveriesParams, **options: Unpack[types.CallOptions]) -> types.ReplayWebhookDeliveriesResponse: ...

    @overload
    async def replay(self, id: str, **fields: Unpack[types.ReplayWebhookDeliveriesFields]) -> types.ReplayWebhookDeliveriesResponse: ...

    async def replay(self, id: str, params: Any = None, **fields: Any) -> types.ReplayWebhookDeliveriesResponse:
        """Replay deliveries of a time range.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.REPLAY_WEBHOOK_DELIVERIES, (id,), params, fields)

    construct_event = staticmethod(construct_event)
    generate_test_header = staticmethod(generate_test_header)



class AsyncWebhooksDeliveries:
    """Deliveries to a webhook."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, id: str, params: Optional[types.ListWebhookDeliveriesParams] = None, **fields: Unpack[types.ListWebhookDeliveriesFields]) -> AsyncList[types.WebhookDelivery]:
        """List deliveries, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_WEBHOOK_DELIVERIES, (id,), params, fields)

    async def get(self, id: str, delivery_id: str, **options: Unpack[types.CallOptions]) -> types.OneWebhookDelivery:
        """Get a delivery with its body and attempts.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_WEBHOOK_DELIVERY, (id, delivery_id,), None, options)

    async def replay(self, id: str, delivery_id: str, **options: Unpack[types.CallOptions]) -> types.QueuedWebhookDelivery:
        """Replay a delivery.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.REPLAY_WEBHOOK_DELIVERY, (id, delivery_id,), None, options)



class AsyncWebhookEvents:
    """The stream of webhook events."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, params: Optional[types.ListWebhookEventsParams] = None, **fields: Unpack[types.ListWebhookEventsFields]) -> AsyncList[types.StreamEvent]:
        """List events, or stream them as server-sent events.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_WEBHOOK_EVENTS, (), params, fields)

    def stream(
        self, *, types: Optional[Sequence[str]] = None, after: Optional[str] = None
    ) -> AsyncIterator[StreamedEvent]:
        """Yields events as they happen, after the cursor `after` or from now on.

        Connects again after a lost connection, for ever, and continues behind the last event. Raises errors of the API
        that do not pass, such as a revoked key.
        """
        return self._client._stream(_operations.LIST_WEBHOOK_EVENTS, types, after)



class AsyncReceivedEmails:
    """Received emails."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    @cached_property
    def attachments(self) -> AsyncReceivedEmailsAttachments:
        """Attachments of a received email."""
        return AsyncReceivedEmailsAttachments(self._client)

    def list(self, params: Optional[types.ListReceivedEmailsParams] = None, **fields: Unpack[types.ListReceivedEmailsFields]) -> AsyncList[types.ReceivedEmail]:
        """List received emails.

        Requires an API key with full access; a key restricted to a domain can access that domain's data.
        """
        return self._client._list(_operations.LIST_RECEIVED_EMAILS, (), params, fields)

    async def get(self, id: str, params: Optional[types.GetReceivedEmailParams] = None, **fields: Unpack[types.GetReceivedEmailFields]) -> types.OneReceivedEmail:
        """Get a received email with its attachments.

        Requires an API key with full access; a key restricted to a domain can access that domain's data.
        """
        return await self._client._call(_operations.GET_RECEIVED_EMAIL, (id,), params, fields)

    async def raw(self, id: str, **options: Unpack[types.CallOptions]) -> bytes:
        """Get the raw message of a received email.

        Requires an API key with full access; a key restricted to a domain can access that domain's data.
        """
        return await self._client._call(_operations.GET_RECEIVED_EMAIL_RAW, (id,), None, options)

    async def reply(self, id: str, params: Optional[types.ReplyToReceivedEmailParams] = None, **fields: Unpack[types.ReplyToReceivedEmailFields]) -> types.Sent:
        """Reply to a received email.

        Requires an API key with full access; a key restricted to a domain can access that domain's data.
        """
        return await self._client._call(_operations.REPLY_TO_RECEIVED_EMAIL, (id,), params, fields)

    @overload
    async def forward(self, id: str, params: types.ForwardReceivedEmailParams, **options: Unpack[types.IdempotentOptions]) -> types.Sent: ...

    @overload
    async def forward(self, id: str, **fields: Unpack[types.ForwardReceivedEmailFields]) -> types.Sent: ...

    async def forward(self, id: str, params: Any = None, **fields: Any) -> types.Sent:
        """Forward a received email as an attachment.

        Requires an API key with full access; a key restricted to a domain can access that domain's data.
        """
        return await self._client._call(_operations.FORWARD_RECEIVED_EMAIL, (id,), params, fields)

    async def delete(self, id: str, **options: Unpack[types.CallOptions]) -> types.Done:
        """Delete a received email and its message.

        Requires an API key with full access; a key restricted to a domain can access that domain's data.
        """
        return await self._client._call(_operations.DELETE_RECEIVED_EMAIL, (id,), None, options)



class AsyncReceivedEmailsAttachments:
    """Attachments of a received email."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def get(self, id: str, att_id: str, **options: Unpack[types.CallOptions]) -> bytes:
        """Get an attachment of a received email.

        Requires an API key with full access; a key restricted to a domain can access that domain's data.
        """
        return await self._client._call(_operations.GET_RECEIVED_EMAIL_ATTACHMENT, (id, att_id,), None, options)



class AsyncAutomations:
    """Automations: emails and steps that a product event starts."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    @cached_property
    def versions(self) -> AsyncAutomationsVersions:
        """Published versions of an automation."""
        return AsyncAutomationsVersions(self._client)

    @cached_property
    def runs(self) -> AsyncAutomationsRuns:
        """Runs of an automation, each for one person."""
        return AsyncAutomationsRuns(self._client)

    @overload
    async def create(self, params: types.CreateAutomationParams, **options: Unpack[types.CallOptions]) -> types.CreateAutomationResponse: ...

    @overload
    async def create(self, **fields: Unpack[types.CreateAutomationFields]) -> types.CreateAutomationResponse: ...

    async def create(self, params: Any = None, **fields: Any) -> types.CreateAutomationResponse:
        """Create an automation, as a draft.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CREATE_AUTOMATION, (), params, fields)

    def list(self, params: Optional[types.ListAutomationsParams] = None, **fields: Unpack[types.ListAutomationsFields]) -> AsyncList[types.Automation]:
        """List automations, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_AUTOMATIONS, (), params, fields)

    async def get(self, id: str, **options: Unpack[types.CallOptions]) -> types.GetAutomationResponse:
        """Get an automation.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_AUTOMATION, (id,), None, options)

    async def update(self, id: str, params: Optional[types.UpdateAutomationParams] = None, **fields: Unpack[types.UpdateAutomationFields]) -> types.UpdateAutomationResponse:
        """Activate, pause, archive or edit an automation, or cancel its runs.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.UPDATE_AUTOMATION, (id,), params, fields)

    async def activate(self, id: str, **options: Unpack[types.CallOptions]) -> types.UpdateAutomationResponse:
        """Activate an automation, so that events start runs.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.ACTIVATE_AUTOMATION, (id,), {"action": "activate"}, options)

    async def pause(self, id: str, **options: Unpack[types.CallOptions]) -> types.UpdateAutomationResponse:
        """Pause an automation and its runs.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.PAUSE_AUTOMATION, (id,), {"action": "pause"}, options)

    async def archive(self, id: str, **options: Unpack[types.CallOptions]) -> types.UpdateAutomationResponse:
        """Archive an automation and cancel its runs.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.ARCHIVE_AUTOMATION, (id,), {"action": "archive"}, options)

    async def cancel_runs(self, id: str, **options: Unpack[types.CallOptions]) -> types.UpdateAutomationResponse:
        """Cancel all runs of an automation.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CANCEL_AUTOMATION_RUNS, (id,), {"action": "cancel_runs"}, options)

    async def delete(self, id: str, **options: Unpack[types.CallOptions]) -> types.Done:
        """Delete an automation and its runs.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.DELETE_AUTOMATION, (id,), None, options)

    async def duplicate(self, id: str, params: Optional[types.DuplicateAutomationParams] = None, **fields: Unpack[types.DuplicateAutomationFields]) -> types.DuplicateAutomationResponse:
        """Copy an automation into a new draft.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.DUPLICATE_AUTOMATION, (id,), params, fields)

    async def dry_run(self, id: str, params: Optional[types.DryRunAutomationParams] = None, **fields: Unpack[types.DryRunAutomationFields]) -> types.DryRunAutomationResponse:
        """Run an automation as a test, without sending anything.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.DRY_RUN_AUTOMATION, (id,), params, fields)

    async def replay(self, id: str, params: Optional[types.ReplayAutomationParams] = None, **fields: Unpack[types.ReplayAutomationFields]) -> types.ReplayAutomationResponse:
        """Run past events as a test, without sending anything.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.REPLAY_AUTOMATION, (id,), params, fields)

    async def step_counts(self, id: str, params: Optional[types.CountAutomationStepsParams] = None, **fields: Unpack[types.CountAutomationStepsFields]) -> types.CountAutomationStepsResponse:
        """Get the number of runs at each step.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.COUNT_AUTOMATION_STEPS, (id,), params, fields)



class AsyncAutomationsVersions:
    """Published versions of an automation."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, id: str, params: Optional[types.ListAutomationVersionsParams] = None, **fields: Unpack[types.ListAutomationVersionsFields]) -> AsyncList[types.AutomationVersion]:
        """List versions, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_AUTOMATION_VERSIONS, (id,), params, fields)



class AsyncAutomationsRuns:
    """Runs of an automation, each for one person."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, id: str, params: Optional[types.ListAutomationRunsParams] = None, **fields: Unpack[types.ListAutomationRunsFields]) -> AsyncList[types.AutomationRun]:
        """List runs, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_AUTOMATION_RUNS, (id,), params, fields)

    async def get(self, id: str, run: str, **options: Unpack[types.CallOptions]) -> types.GetAutomationRunResponse:
        """Get a run, step by step.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_AUTOMATION_RUN, (id, run,), None, options)

    async def cancel(self, id: str, run: str, **options: Unpack[types.CallOptions]) -> types.CancelAutomationRunResponse:
        """Cancel a run.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CANCEL_AUTOMATION_RUN, (id, run,), None, options)



class AsyncAffiliates:
    """Affiliates of the program."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    @cached_property
    def links(self) -> AsyncAffiliatesLinks:
        """Links of an affiliate."""
        return AsyncAffiliatesLinks(self._client)

    def list(self, params: Optional[types.ListAffiliatesParams] = None, **fields: Unpack[types.ListAffiliatesFields]) -> AsyncList[types.Affiliate]:
        """List partners, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_AFFILIATES, (), params, fields)

    @overload
    async def create(self, params: types.CreateAffiliateParams, **options: Unpack[types.IdempotentOptions]) -> types.CreateAffiliateResponse: ...

    @overload
    async def create(self, **fields: Unpack[types.CreateAffiliateFields]) -> types.CreateAffiliateResponse: ...

    async def create(self, params: Any = None, **fields: Any) -> types.CreateAffiliateResponse:
        """Add a partner.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CREATE_AFFILIATE, (), params, fields)

    async def get(self, id: str, **options: Unpack[types.CallOptions]) -> types.OneAffiliate:
        """Get a partner with all its links.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_AFFILIATE, (id,), None, options)

    async def update(self, id: str, params: Optional[types.UpdateAffiliateParams] = None, **fields: Unpack[types.UpdateAffiliateFields]) -> types.UpdateAffiliateResponse:
        """Update a partner.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.UPDATE_AFFILIATE, (id,), params, fields)

    async def delete(self, id: str, **options: Unpack[types.CallOptions]) -> types.Done:
        """Delete a partner that has never been paid.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.DELETE_AFFILIATE, (id,), None, options)

    async def approve(self, id: str, params: Optional[types.ApproveAffiliateParams] = None, **fields: Unpack[types.ApproveAffiliateFields]) -> types.ApproveAffiliateResponse:
        """Approve a partner.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.APPROVE_AFFILIATE, (id,), params, fields)

    async def reject(self, id: str, params: Optional[types.RejectAffiliateParams] = None, **fields: Unpack[types.RejectAffiliateFields]) -> types.RejectAffiliateResponse:
        """Reject a partner.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.REJECT_AFFILIATE, (id,), params, fields)

    async def suspend(self, id: str, params: Optional[types.SuspendAffiliateParams] = None, **fields: Unpack[types.SuspendAffiliateFields]) -> types.SuspendAffiliateResponse:
        """Suspend a partner: its links stop redirecting and its payouts stop.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.SUSPEND_AFFILIATE, (id,), params, fields)

    async def create_login_link(self, id: str, **options: Unpack[types.IdempotentOptions]) -> types.CreateAffiliateLoginLinkResponse:
        """Create a one-time link that signs a partner in to the portal; it expires after a minute.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CREATE_AFFILIATE_LOGIN_LINK, (id,), None, options)



class AsyncAffiliatesLinks:
    """Links of an affiliate."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, id: str, params: Optional[types.ListAffiliateLinksParams] = None, **fields: Unpack[types.ListAffiliateLinksFields]) -> AsyncList[types.AffiliateLink]:
        """List a partner's links, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_AFFILIATE_LINKS, (id,), params, fields)

    @overload
    async def create(self, id: str, params: types.CreateAffiliateLinkParams, **options: Unpack[types.IdempotentOptions]) -> types.CreateAffiliateLinkResponse: ...

    @overload
    async def create(self, id: str, **fields: Unpack[types.CreateAffiliateLinkFields]) -> types.CreateAffiliateLinkResponse: ...

    async def create(self, id: str, params: Any = None, **fields: Any) -> types.CreateAffiliateLinkResponse:
        """Create a link for a partner.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CREATE_AFFILIATE_LINK, (id,), params, fields)

    async def delete(self, id: str, link_id: str, **options: Unpack[types.CallOptions]) -> types.Done:
        """Delete a link other than the primary one.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.DELETE_AFFILIATE_LINK, (id, link_id,), None, options)



class AsyncAffiliateCampaigns:
    """Campaigns of the affiliate program: commissions and terms."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def list(self, params: Optional[types.ListAffiliateCampaignsParams] = None, **fields: Unpack[types.ListAffiliateCampaignsFields]) -> types.ListAffiliateCampaignsResponse:
        """List all campaigns, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.LIST_AFFILIATE_CAMPAIGNS, (), params, fields)

    @overload
    async def create(self, params: types.CreateAffiliateCampaignParams, **options: Unpack[types.IdempotentOptions]) -> types.CreateAffiliateCampaignResponse: ...

    @overload
    async def create(self, **fields: Unpack[types.CreateAffiliateCampaignFields]) -> types.CreateAffiliateCampaignResponse: ...

    async def create(self, params: Any = None, **fields: Any) -> types.CreateAffiliateCampaignResponse:
        """Create a campaign.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CREATE_AFFILIATE_CAMPAIGN, (), params, fields)

    async def get(self, id: str, **options: Unpack[types.CallOptions]) -> types.OneAffiliateCampaign:
        """Get a campaign.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_AFFILIATE_CAMPAIGN, (id,), None, options)

    async def update(self, id: str, params: Optional[types.UpdateAffiliateCampaignParams] = None, **fields: Unpack[types.UpdateAffiliateCampaignFields]) -> types.UpdateAffiliateCampaignResponse:
        """Update a campaign; new rates apply to new commissions.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.UPDATE_AFFILIATE_CAMPAIGN, (id,), params, fields)



class AsyncAffiliateReferrals:
    """People that affiliates referred."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, params: Optional[types.ListAffiliateReferralsParams] = None, **fields: Unpack[types.ListAffiliateReferralsFields]) -> AsyncList[types.AffiliateReferral]:
        """List referrals, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_AFFILIATE_REFERRALS, (), params, fields)

    @overload
    async def create(self, params: types.CreateAffiliateReferralParams, **options: Unpack[types.IdempotentOptions]) -> types.CreateAffiliateReferralResponse: ...

    @overload
    async def create(self, **fields: Unpack[types.CreateAffiliateReferralFields]) -> types.CreateAffiliateReferralResponse: ...

    async def create(self, params: Any = None, **fields: Any) -> types.CreateAffiliateReferralResponse:
        """Create a referral.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.CREATE_AFFILIATE_REFERRAL, (), params, fields)

    async def get(self, id: str, **options: Unpack[types.CallOptions]) -> types.OneAffiliateReferral:
        """Get a referral.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_AFFILIATE_REFERRAL, (id,), None, options)



class AsyncAffiliateCommissions:
    """What affiliates earned."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, params: Optional[types.ListAffiliateCommissionsParams] = None, **fields: Unpack[types.ListAffiliateCommissionsFields]) -> AsyncList[types.AffiliateCommission]:
        """List commissions, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_AFFILIATE_COMMISSIONS, (), params, fields)

    async def get(self, id: str, **options: Unpack[types.CallOptions]) -> types.AffiliateCommissionDetail:
        """Get a commission.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_AFFILIATE_COMMISSION, (id,), None, options)

    @overload
    async def reverse(self, id: str, params: types.ReverseAffiliateCommissionParams, **options: Unpack[types.CallOptions]) -> types.ReverseAffiliateCommissionResponse: ...

    @overload
    async def reverse(self, id: str, **fields: Unpack[types.ReverseAffiliateCommissionFields]) -> types.ReverseAffiliateCommissionResponse: ...

    async def reverse(self, id: str, params: Any = None, **fields: Any) -> types.ReverseAffiliateCommissionResponse:
        """Reverse a commission that is neither paid nor in a payout.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.REVERSE_AFFILIATE_COMMISSION, (id,), params, fields)



class AsyncAffiliatePayouts:
    """Payments to affiliates."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, params: Optional[types.ListAffiliatePayoutsParams] = None, **fields: Unpack[types.ListAffiliatePayoutsFields]) -> AsyncList[types.AffiliatePayout]:
        """List payouts, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_AFFILIATE_PAYOUTS, (), params, fields)

    async def get(self, id: str, **options: Unpack[types.CallOptions]) -> types.OneAffiliatePayout:
        """Get a payout.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_AFFILIATE_PAYOUT, (id,), None, options)

    @overload
    async def mark_paid(self, id: str, params: types.MarkAffiliatePayoutPaidParams, **options: Unpack[types.IdempotentOptions]) -> types.MarkAffiliatePayoutPaidResponse: ...

    @overload
    async def mark_paid(self, id: str, **fields: Unpack[types.MarkAffiliatePayoutPaidFields]) -> types.MarkAffiliatePayoutPaidResponse: ...

    async def mark_paid(self, id: str, params: Any = None, **fields: Any) -> types.MarkAffiliatePayoutPaidResponse:
        """Mark a manual payout as paid, with its proof.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.MARK_AFFILIATE_PAYOUT_PAID, (id,), params, fields)



class AsyncGrants:
    """What users have allowed apps to do."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, params: Optional[types.ListGrantsParams] = None, **fields: Unpack[types.ListGrantsFields]) -> AsyncList[types.Grant]:
        """List what users have allowed apps to do, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_GRANTS, (), params, fields)

    async def get(self, id: str, **options: Unpack[types.CallOptions]) -> types.GetGrantResponse:
        """Get a grant.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.GET_GRANT, (id,), None, options)

    async def revoke(self, id: str, **options: Unpack[types.CallOptions]) -> types.Done:
        """Revoke a grant: its app loses access at once.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return await self._client._call(_operations.REVOKE_GRANT, (id,), None, options)



class AsyncApprovals:
    """Requests that wait for a person's approval."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, params: Optional[types.ListApprovalsParams] = None, **fields: Unpack[types.ListApprovalsFields]) -> AsyncList[types.Approval]:
        """List requests that wait for approval and decided ones, newest first.

        A sending-only API key is sufficient for what it sent; a key restricted to a domain can access that domain's
        data.
        """
        return self._client._list(_operations.LIST_APPROVALS, (), params, fields)

    async def get(self, id: str, **options: Unpack[types.CallOptions]) -> types.GetApprovalResponse:
        """Get an approval, with the response once the request was executed.

        A sending-only API key is sufficient for what it sent; a key restricted to a domain can access that domain's
        data.
        """
        return await self._client._call(_operations.GET_APPROVAL, (id,), None, options)



class AsyncAuditLog:
    """What credentials and users did."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def list(self, params: Optional[types.ListAuditLogParams] = None, **fields: Unpack[types.ListAuditLogFields]) -> AsyncList[types.AuditEntry]:
        """List what credentials and users did in the last 90 days, newest first.

        Requires an API key with full access; the key must not be restricted to a domain.
        """
        return self._client._list(_operations.LIST_AUDIT_LOG, (), params, fields)
