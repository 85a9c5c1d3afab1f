import {
  CONNECTION_SCHEMA,
  objectSchema,
  requireOneOf,
  SECRET_SCHEMA,
  TEXT_SCHEMA,
} from '../../values/config-schema.ts'
import { defineSource } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { selectFixedStreams } from '../kit/select-stream.ts'
import { SINCE_SCHEMA } from '../kit/since.ts'
import type { StripeOptions, StripeStreams } from './source.ts'

type StreamOptions = Pick<StripeOptions, 'expand' | 'nested'>

const FIXED_STREAMS = selectFixedStreams({ followsChanges: true })

export default defineSource({
  name: 'stripe',
  title: 'Stripe',
  times: { since: true, range: true },
  config: requireOneOf(
    objectSchema({
      api_key: SECRET_SCHEMA,
      connection: CONNECTION_SCHEMA,
      base_url: TEXT_SCHEMA,
      api_version: TEXT_SCHEMA,
      since: SINCE_SCHEMA,
    }),
    ['api_key'],
    ['connection'],
  ),
  async open({ api_key: apiKey, connection, base_url: baseUrl, api_version: apiVersion, since }) {
    const { stripe } = await import('./source.ts')
    return (options: StreamOptions): StripeStreams =>
      stripe({ ...omitUndefined({ apiKey, connection, baseUrl, apiVersion, since }), ...options })
  },
  streams: {
    ...FIXED_STREAMS.streams,
    options: objectSchema({
      stream: TEXT_SCHEMA,
      expand: { type: 'array', items: TEXT_SCHEMA, description: 'Fields to expand, such as data.payment_method.' },
      nested: {
        type: 'object',
        additionalProperties: TEXT_SCHEMA,
        description: 'The databases of nested objects, by type: { payment_method: payment_methods }.',
      },
    }),
  },
  stream(open, declaration) {
    const { expand, nested, ...options } = declaration.options ?? {}
    const stream = FIXED_STREAMS.stream(open({ ...omitUndefined({ expand, nested }) }), { ...declaration, options })
    return nested === undefined ? stream : { ...stream, databases: [...new Set(Object.values(nested))] }
  },
  discover: (open) => FIXED_STREAMS.discover(open({})),
  template: {
    rank: 20,
    settings: {
      STRIPE_KEY: 'a secret key, or a restricted key with read access to customers, products and events',
    },
    database: 'customers',
  },
  advice: {
    rank: 20,
    facts: { changes: 'events', deletes: 'reported', paging: 'token', http: 'other', lagSeconds: 10 },
    stream: "stripe({ apiKey: 'STRIPE_KEY' }).customers",
    database: 'customers',
  },
})
