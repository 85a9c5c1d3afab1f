import { objectSchema, SECRET_SCHEMA, TEXT_SCHEMA } from '../../values/config-schema.ts'
import { defineSource } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { selectFixedStreams } from '../kit/select-stream.ts'

export default defineSource({
  name: 'linear',
  title: 'Linear',
  config: objectSchema({ api_key: SECRET_SCHEMA, base_url: TEXT_SCHEMA }, ['api_key']),
  async open({ api_key: apiKey, base_url: baseUrl }) {
    const { linear } = await import('./source.ts')
    return linear({ apiKey, ...omitUndefined({ baseUrl }) })
  },
  ...selectFixedStreams({ followsChanges: false }),
  template: { rank: 80, settings: { LINEAR_KEY: 'a personal API key' }, database: 'issues' },
  advice: {
    rank: 60,
    facts: { changes: 'none', paging: 'graphql', nested: 'no', size: 'small' },
    stream: "linear({ apiKey: 'LINEAR_KEY' }).issues",
    database: 'issues',
  },
})
