/**
 * The errors of the SDK; sdk/README.md has the table of classes and codes. Each message says what to do. No error contains
 * the API key.
 */

export * from "./error_bases.js";
export * from "./generated/error_classes.js";
