import { Client } from '@hubspot/api-client'
import { describe, expect, test } from 'vitest'
import { createSimulatorFetch } from '../../simulators/src/kit/simulator-fetch.ts'
import { serve } from '../../simulators/src/kit/serve.ts'
import { HubspotSimulator, type HubspotOptions } from '../../simulators/src/hubspot/simulator.ts'
import { portsOf } from './ports.ts'

function open(options: HubspotOptions = {}) {
  const simulator = new HubspotSimulator(portsOf(1), options)
  const fetch = createSimulatorFetch(simulator)
  const send = async (path: string, body?: unknown) => {
    const response = await fetch(`https://api.hubapi.com/crm/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: 'Bearer t', 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as any }
  }
  const read = (inputs: unknown) => send('v4/associations/contacts/companies/batch/read', { inputs })
  return { simulator, send, read }
}

describe('associations', () => {
  test('the client reads the associations of a batch, and those of one object page by page', async () => {
    const { simulator } = open({ associationsMax: 2 })
    const contact = simulator.create('contacts')
    const lonely = simulator.create('contacts')
    const companies = Array.from({ length: 5 }, () => simulator.create('companies'))
    for (const company of companies) simulator.associate('contacts', contact, 'companies', company)
    await using server = await serve(simulator)
    const client = new Client({ accessToken: 'token', basePath: server.url })
    const batch = await client.crm.associations.v4.batchApi.getPage('contacts', 'companies', {
      inputs: [{ id: contact }, { id: lonely }],
    } as never)
    expect(batch.results.map(({ _from, to }) => [_from.id, to.map(({ toObjectId }) => toObjectId)])).toEqual([
      [contact, companies.slice(0, 2)],
    ])
    const seen: string[] = []
    for (let after: string | undefined; ;) {
      const page = await client.crm.associations.v4.basicApi.getPage('contacts', contact, 'companies', after)
      seen.push(...page.results.map(({ toObjectId }) => toObjectId))
      after = page.paging?.next?.after
      if (after === undefined) break
    }
    expect(seen).toEqual(companies)
  })

  test('an object without associations is an error in a response of status 207', async () => {
    const { simulator, read } = open()
    const [contact, lonely] = [simulator.create('contacts'), simulator.create('contacts')]
    const company = simulator.create('companies')
    simulator.associate('contacts', contact, 'companies', company, 'Billing')
    const { status, body } = await read([{ id: contact }, { id: lonely }, { id: '1' }])
    expect(status).toBe(207)
    expect(body).toMatchObject({
      status: 'COMPLETE',
      results: [
        {
          from: { id: contact },
          to: [{ toObjectId: company, associationTypes: [{ label: null }, { label: 'Billing' }] }],
        },
      ],
      numErrors: 2,
      errors: [
        { subCategory: 'crm.associations.NO_ASSOCIATIONS_FOUND', context: { fromObjectId: [lonely] } },
        { subCategory: 'crm.associations.NO_ASSOCIATIONS_FOUND', context: { fromObjectId: ['1'] } },
      ],
    })
    expect((await read([{ id: contact }])).status).toBe(200)
  })

  test('the rest of an object with many associations follows by its own cursor', async () => {
    const { simulator, read } = open({ associationsMax: 2 })
    const contact = simulator.create('contacts')
    for (let n = 0; n < 3; n++) simulator.associate('contacts', contact, 'companies', simulator.create('companies'))
    const [first] = (await read([{ id: contact }])).body.results
    const [second] = (await read([{ id: contact, after: first.paging.next.after }])).body.results
    expect([first.to.length, second.to.length, second.paging]).toEqual([2, 1, undefined])
  })

  test('a batch has at most 1,000 inputs, and an archived object has no associations', async () => {
    const { simulator, read } = open()
    const [contact, company] = [simulator.create('contacts'), simulator.create('companies')]
    simulator.associate('contacts', contact, 'companies', company)
    const many = Array.from({ length: 1_001 }, (_, n) => ({ id: String(n) }))
    expect((await read(many)).status).toBe(400)
    expect((await read([])).status).toBe(400)
    simulator.remove('companies', company)
    expect((await read([{ id: contact }])).status).toBe(207)
  })
})

test('a custom object is described by its name and by its type id', async () => {
  const { send } = open({ types: { contacts: ['email'], p1_cars: ['plate', 'color'] } })
  for (const name of ['p1_cars', '2-100'])
    expect((await send(`v3/schemas/${name}`)).body).toMatchObject({
      fullyQualifiedName: 'p1_cars',
      objectTypeId: '2-100',
      properties: [
        { name: 'plate', archived: false },
        { name: 'color', archived: false },
        { name: 'createdate', hubspotDefined: true },
        {},
        {},
      ],
    })
  expect((await send('v3/schemas/p1_boats')).status).toBe(404)
})
