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

export default defineSource({
  name: 'github-stars',
  title: 'GitHub stars',
  times: { since: true, range: true },
  config: requireOneOf(
    objectSchema({
      token: SECRET_SCHEMA,
      connection: CONNECTION_SCHEMA,
      base_url: TEXT_SCHEMA,
      user: TEXT_SCHEMA,
      since: SINCE_SCHEMA,
    }),
    ['token'],
    ['connection'],
  ),
  async open({ token, connection, base_url: baseUrl, user, since }) {
    const { githubStars } = await import('./source.ts')
    return { stars: githubStars(omitUndefined({ token, connection, baseUrl, user, since })) }
  },
  ...selectFixedStreams({ followsChanges: true }),
  template: { rank: 70, settings: { GITHUB_TOKEN: 'a token of the user whose stars to read' }, database: 'stars' },
  advice: {
    rank: 90,
    facts: { changes: 'newest-first', deletes: 'ignore' },
    stream: "githubStars({ token: 'GITHUB_TOKEN' })",
    database: 'stars',
  },
})
