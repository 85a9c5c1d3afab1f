import { objectSchema, SECRET_SCHEMA, TEXT_SCHEMA } from '../../values/config-schema.ts'
import { defineSource } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { selectNamedStreams, type NamedStreams } from '../kit/select-stream.ts'

export default defineSource({
  name: 'airtable',
  title: 'Airtable',
  config: objectSchema({ base_id: TEXT_SCHEMA, token: SECRET_SCHEMA, base_url: TEXT_SCHEMA }, ['base_id', 'token']),
  async open({ base_id: baseId, token, base_url: baseUrl }): Promise<NamedStreams> {
    const { airtable } = await import('./source.ts')
    const source = airtable({ baseId, token, ...omitUndefined({ baseUrl }) })
    return { stream: (name) => source.table(name), discover: source.discover }
  },
  ...selectNamedStreams('table', { followsChanges: false, supportsSelect: false, supportsSafetyWindow: false }),
  template: {
    rank: 90,
    settings: { AIRTABLE_TOKEN: 'a personal access token; set the base and the table in worker.ts' },
    database: 'tasks',
  },
  advice: {
    rank: 70,
    facts: { changes: 'none', paging: 'token', http: 'other', size: 'small' },
    stream: "airtable({ baseId: 'app0000000000000', token: 'AIRTABLE_TOKEN' }).table('tbl0000000000000')",
    database: 'tasks',
  },
})
