/** What the user can put right: one line on stderr and exit code 2. */
export class UsageError extends Error {}
