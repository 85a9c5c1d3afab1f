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

const FIXED_STREAMS = selectFixedStreams({ followsChanges: false })

export default defineSource({
  name: 'linear',
  title: 'Linear',
  times: { since: true, range: true },
  config: requireOneOf(
    objectSchema({
      api_key: SECRET_SCHEMA,
      connection: CONNECTION_SCHEMA,
      base_url: TEXT_SCHEMA,
      since: SINCE_SCHEMA,
      include_archived: { type: 'boolean', description: 'Keep archived records. Default: they count as deleted.' },
    }),
    ['api_key'],
    ['connection'],
  ),
  async open({ api_key: apiKey, connection, base_url: baseUrl, since, include_archived: includeArchived }) {
    const { linear } = await import('./source.ts')
    return linear(omitUndefined({ apiKey, connection, baseUrl, since, includeArchived }))
  },
  ...FIXED_STREAMS,
  stream: ({ tracked, ...lists }, declaration) =>
    FIXED_STREAMS.stream(declaration.mode === 'incremental' ? tracked : lists, declaration),
  discover: ({ tracked }) => FIXED_STREAMS.discover(tracked),
  template: { rank: 80, settings: { LINEAR_KEY: 'a personal API key' }, database: 'issues' },
  advice: {
    rank: 60,
    facts: { changes: 'none', paging: 'graphql', nested: 'no', size: 'small' },
    stream: "linear({ apiKey: 'LINEAR_KEY' }).issues",
    database: 'issues',
  },
})
