import { objectSchema, SECRET_SCHEMA, TEXT_SCHEMA, type SchemaValue } from '../../values/config-schema.ts'
import { required } from '../../values/required.ts'

const SASL_SCHEMA = {
  ...objectSchema(
    {
      mechanism: { enum: ['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer'] },
      username: SECRET_SCHEMA,
      password: SECRET_SCHEMA,
      token: SECRET_SCHEMA,
    },
    ['mechanism'],
  ),
  if: { properties: { mechanism: { const: 'oauthbearer' } } },
  // oxlint-disable-next-line unicorn/no-thenable
  then: { required: ['token'] },
  else: { required: ['username', 'password'] },
} as const

/** The fields of `config` in a manifest that describe a cluster, for the source and the destination. */
export const CONNECTION_FIELDS = {
  brokers: {
    type: 'string',
    pattern: '^(?:\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}|[^\\s,:@]+:\\d+(?:,\\s*[^\\s,:@]+:\\d+)*)$',
    description: 'comma-separated host:port of brokers, or ${NAME} of a secret that contains them',
  },
  ssl: {
    ...objectSchema({ ca: SECRET_SCHEMA, cert: SECRET_SCHEMA, key: SECRET_SCHEMA }),
    type: ['boolean', 'object'],
  },
  sasl: SASL_SCHEMA,
  client_id: TEXT_SCHEMA,
} as const

type Sasl =
  | { mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'; username: string; password: string }
  | { mechanism: 'oauthbearer'; token: string }

/** The fields that the mechanism needs. The schema requires them. */
export function toSasl({ mechanism, username, password, token }: SchemaValue<typeof SASL_SCHEMA>): Sasl {
  return mechanism === 'oauthbearer'
    ? { mechanism, token: required(token, '`token`') }
    : { mechanism, username: required(username, '`username`'), password: required(password, '`password`') }
}
