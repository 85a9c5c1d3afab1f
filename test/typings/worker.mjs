import { Worker } from 'tidemark'
import { z } from 'zod'

const worker = new Worker({ name: 'shop' })

// By JSON Schema, with everything that is awkward.
const orders = worker.database('orders', {
  schema: {
    type: 'object',
    properties: {
      id: { type: 'string', description: 'As the shop prints it: #1001 */ and so on' },
      total: { type: 'number' },
      count: { type: 'integer' },
      paid: { type: ['boolean', 'null'] },
      status: { enum: ['open', 'shipped', null] },
      kind: { const: 'order' },
      'line items': { type: 'array', items: { $ref: '#/$defs/line' } },
      place: { type: 'array', prefixItems: [{ type: 'number' }, { type: 'number' }], items: false, minItems: 2 },
      tags: { type: 'object', additionalProperties: { type: 'string' } },
      note: {
        anyOf: [{ type: 'string' }, { type: 'object', properties: { html: { type: 'string' } }, required: ['html'] }],
      },
      anything: true,
    },
    required: ['id', 'total', 'line items'],
    $defs: {
      line: {
        type: 'object',
        properties: { sku: { type: 'string' }, parts: { type: 'array', items: { $ref: '#/$defs/line' } } },
        required: ['sku'],
      },
    },
  },
})
// By zod.
const people = worker.database('people', {
  schema: z.object({
    name: z.string(),
    email: z.email().nullable(),
    age: z.int().optional(),
    roles: z.array(z.enum(['admin', 'guest'])),
  }),
})
// By what has landed.
const events = worker.database('door-events')
worker.database('orders.line')
worker.database('123')

const once = (database, changes) => ({
  database,
  mode: 'incremental',
  schedule: 'manual',
  execute: async () => ({ changes, hasMore: false }),
})
worker.sync('people', once(people, []))
worker.sync('orders', once(orders, []))
worker.sync(
  'door-events',
  once(events, [
    {
      type: 'upsert',
      key: '1',
      record: {
        door: 'north',
        open: true,
        count: 3,
        weight: 1.5,
        at: null,
        big: 123456789012345678901234567890n,
        nested: { a: 1 },
        mixed: 1,
        '': 'nameless',
        'a-b': 'x',
      },
    },
    { type: 'upsert', key: '2', record: { mixed: 'two' } },
  ]),
)

export default worker
