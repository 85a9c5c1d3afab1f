import { COUNT_SCHEMA, objectSchema, SECRET_SCHEMA, TEXT_SCHEMA } from '../../values/config-schema.ts'
import { defineDestination } from '../kit/define-destination.ts'
import { JSON_TYPES } from '../kit/json-types.ts'

/** A URL that receives batches. */
export default defineDestination({
  name: 'http',
  title: 'HTTP',
  packages: ['node:crypto', 'node:http', 'undici'],
  config: objectSchema(
    {
      url: TEXT_SCHEMA,
      secret: SECRET_SCHEMA,
      headers: { type: 'object', additionalProperties: TEXT_SCHEMA },
      allow_http: { type: 'boolean' },
      body_bytes_max: COUNT_SCHEMA,
      timeout_ms: COUNT_SCHEMA,
    },
    ['url', 'secret'],
  ),
  types: JSON_TYPES,
  limits: [
    ['Any record', 'sent as it is in the store: every value and every field'],
    ['A batch larger than `body_bytes_max`', 'several requests, each with a token of its own'],
    ['A record larger than the receiver accepts', 'stops the destination with DESTINATION_REFUSED'],
  ],
  async create({ allow_http: allowHttp, body_bytes_max: bodyBytesMax, timeout_ms: timeoutMs, url, secret, headers }) {
    const { http } = await import('./destination.ts')
    return http({
      url,
      secret,
      ...(headers !== undefined && { headers }),
      ...(allowHttp !== undefined && { allowHttp }),
      ...(bodyBytesMax !== undefined && { bodyBytesMax }),
      ...(timeoutMs !== undefined && { timeoutMs }),
    })
  },
})
