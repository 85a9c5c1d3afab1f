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
  name: 'github',
  title: 'GitHub',
  times: { since: true, range: true },
  config: requireOneOf(
    objectSchema({
      token: SECRET_SCHEMA,
      connection: CONNECTION_SCHEMA,
      base_url: TEXT_SCHEMA,
      owner: TEXT_SCHEMA,
      since: SINCE_SCHEMA,
    }),
    ['token'],
    ['connection'],
  ),
  async open({ token, connection, base_url: baseUrl, owner, since }) {
    const { github } = await import('./source.ts')
    return github(omitUndefined({ token, connection, baseUrl, owner, since }))
  },
  streams: {
    ...FIXED_STREAMS.streams,
    options: objectSchema({
      stream: TEXT_SCHEMA,
      repository: {
        type: 'string',
        pattern: '^[^/\\s]+/[^/\\s]+$',
        description: 'owner/name: a stream of this repository. Without it, a stream of all repositories of the owner.',
      },
    }),
  },
  stream({ repository: open, repositories, issues }, declaration) {
    const { repository, ...options } = declaration.options ?? {}
    const streams = repository === undefined ? { repositories, issues } : { ...open(repository) }
    return FIXED_STREAMS.stream(streams, { ...declaration, options })
  },
  discover: ({ repositories, issues }) => FIXED_STREAMS.discover({ repositories, issues }),
  template: {
    rank: 60,
    label: 'GitHub repositories and issues',
    settings: { GITHUB_TOKEN: 'a token with read access to the repositories' },
    database: 'issues',
  },
  advice: {
    rank: 40,
    facts: { changes: 'none', paging: 'graphql', nested: 'yes', size: 'small' },
    stream: "github({ token: 'GITHUB_TOKEN' }).issues",
    database: 'issues',
    schedule: '1h',
  },
})
