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
  name: 'bookmarks',
  title: 'X bookmarks',
  times: { since: true, range: true },
  config: requireOneOf(
    objectSchema(
      {
        user_id: TEXT_SCHEMA,
        token: SECRET_SCHEMA,
        connection: CONNECTION_SCHEMA,
        base_url: TEXT_SCHEMA,
        since: { ...SINCE_SCHEMA, description: `posts written before it are not copied; ${SINCE_SCHEMA.description}` },
      },
      ['user_id'],
    ),
    ['token'],
    ['connection'],
  ),
  async open({ user_id: userId, token, connection, base_url: baseUrl, since }) {
    const { bookmarks } = await import('./source.ts')
    return { bookmarks: bookmarks({ userId, ...omitUndefined({ token, connection, baseUrl, since }) }) }
  },
  ...selectFixedStreams({ followsChanges: true }),
  template: {
    rank: 100,
    settings: { X_TOKEN: 'a user access token; set the user in worker.ts' },
    database: 'bookmarks',
  },
  advice: {
    rank: 80,
    facts: { changes: 'newest-first', deletes: 'ignore' },
    stream: "bookmarks({ userId: '2244994945', token: 'X_TOKEN' })",
    database: 'posts',
  },
})
