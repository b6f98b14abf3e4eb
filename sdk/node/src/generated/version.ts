// Generated from sdk/operations.json by sdk/generate; do not edit.

/** Version of this package. */
export const VERSION = "0.1.0";

/** Version of the API that the types describe; sent with each request. */
export const SERVICE_VERSION = "2026-11-01";
