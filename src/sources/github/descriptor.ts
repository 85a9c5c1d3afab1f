import { objectSchema, SECRET_SCHEMA, TEXT_SCHEMA } from '../../values/config-schema.ts'
import { defineSource } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { selectFixedStreams } from '../kit/select-stream.ts'

export default defineSource({
  name: 'github',
  title: 'GitHub',
  config: objectSchema({ token: SECRET_SCHEMA, base_url: TEXT_SCHEMA, owner: TEXT_SCHEMA }, ['token']),
  async open({ token, base_url: baseUrl, owner }) {
    const { github } = await import('./source.ts')
    return { ...github({ token, ...omitUndefined({ baseUrl, owner }) }) }
  },
  ...selectFixedStreams({ followsChanges: false }),
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
