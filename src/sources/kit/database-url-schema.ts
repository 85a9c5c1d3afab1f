/** The URL of an SQL database. A URL with a password is a secret. */
export const DATABASE_URL_SCHEMA = {
  type: 'string',
  pattern: '^(?:\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}|sqlite:.+|(?:postgres|postgresql|mysql|mariadb)://(?:[^:@/]+@)?[^@]*)$',
  description:
    'postgres://…, mysql://…, mariadb://… or sqlite:file. A URL with a password is a secret: write ${NAME} here, and set NAME in the environment or in .env',
} as const
