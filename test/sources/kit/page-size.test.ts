import { expect, test } from 'vitest'
import { github } from '../../../src/sources/github/source.ts'
import { hubspot } from '../../../src/sources/hubspot/source.ts'
import { linear } from '../../../src/sources/linear/source.ts'
import { salesforce } from '../../../src/sources/salesforce/source.ts'
import { servicenow } from '../../../src/sources/servicenow/source.ts'

const SOURCES: Record<string, { max: number; declare: (limit: number) => unknown }> = {
  github: { max: 100, declare: (repositoriesPerPage) => github({ token: 'T', owner: 'viewer', repositoriesPerPage }) },
  hubspot: { max: 100, declare: (limit) => hubspot({ accessToken: 'T', limit }) },
  linear: { max: 250, declare: (limit) => linear({ apiKey: 'T', limit }) },
  salesforce: {
    max: 2_000,
    declare: (limit) => salesforce({ instanceUrl: 'https://x.example', accessToken: 'T', limit }),
  },
  servicenow: {
    max: 10_000,
    declare: (limit) => servicenow({ instanceUrl: 'https://x.example', user: 'U', password: 'P', limit }),
  },
}

test.each(Object.entries(SOURCES))('%s rejects an unsupported page size at declaration', (_, { max, declare }) => {
  for (const limit of [1, max]) expect(() => declare(limit)).not.toThrow()
  for (const limit of [0, -1, 1.5, Number.NaN, max + 1])
    expect(() => declare(limit)).toThrow(
      expect.objectContaining({ code: 'SYNC_INVALID', message: expect.stringContaining(`1 to ${max}`) }),
    )
})
