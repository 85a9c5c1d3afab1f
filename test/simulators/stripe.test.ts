import { Stripe } from 'stripe'
import { describe, expect, test } from 'vitest'
import { createSimulatorFetch } from '../../simulators/src/kit/simulator-fetch.ts'
import { churn } from '../../simulators/src/kit/churn.ts'
import { serve } from '../../simulators/src/kit/serve.ts'
import { StripeSimulator, type StripeOptions } from '../../simulators/src/stripe/simulator.ts'
import { portsOf } from './ports.ts'

interface List {
  object: string
  has_more: boolean
  url: string
  data: Array<
    { id: string; created: number; type?: string; data?: { object: Record<string, unknown> } } & Record<string, unknown>
  >
}

function open(options: StripeOptions = {}, seed = 1) {
  const ports = portsOf(seed)
  const simulator = new StripeSimulator(ports, options)
  const fetch = createSimulatorFetch(simulator)
  const get = (path: string) => fetch(`https://api.stripe.com${path}`, { headers: { authorization: 'Bearer sk_test' } })
  const list = async (path: string) => (await (await get(path)).json()) as List
  /** One customer per second, oldest first. */
  const customers = (count: number) =>
    Array.from({ length: count }, () => {
      ports.clock.advance(1_000)
      return simulator.create('customer')
    })
  return { ...ports, simulator, get, list, customers }
}

function clientOf(url: string): Stripe {
  const { hostname, port } = new URL(url)
  return new Stripe('sk_test_123', { host: hostname, port: Number(port), protocol: 'http', maxNetworkRetries: 0 })
}

describe('the stripe client against the simulator', () => {
  test('the client lists page by page to the end and sees every customer once, newest first', async () => {
    const { simulator, customers } = open()
    const ids = customers(25)
    await using server = await serve(simulator)
    const seen: string[] = []
    for await (const customer of clientOf(server.url).customers.list({ limit: 10 })) seen.push(customer.id)
    expect(seen).toEqual(ids.toReversed())
    expect(server.requests).toBe(3)
  })

  test('objects below a namespace are listed and read by id, and only some types have events', async () => {
    const { simulator, list } = open()
    const session = simulator.create('checkout.session')
    const card = simulator.create('issuing.card')
    const quote = simulator.create('quote')
    simulator.update('quote', quote, { description: 'draft' })
    simulator.update('checkout.session', session, { status: 'complete' })
    await using server = await serve(simulator)
    const stripe = clientOf(server.url)
    expect((await stripe.checkout.sessions.list()).data.map(({ id }) => id)).toEqual([session])
    expect(await stripe.issuing.cards.retrieve(card)).toMatchObject({ id: card, object: 'issuing.card' })
    const events = (await list('/v1/events')).data.map(({ type }) => type)
    expect(new Set(events)).toEqual(new Set(['checkout.session.completed', 'issuing_card.created', 'quote.created']))
    await expect(list('/v1/quotes?created[gte]=1')).resolves.toMatchObject({ error: { code: 'parameter_unknown' } })
  })

  test('the client reads events after an anchor, with a snapshot of the object in each', async () => {
    const { simulator, clock, customers } = open()
    const [id] = customers(1)
    await using server = await serve(simulator)
    const stripe = clientOf(server.url)
    const anchor = (await stripe.events.list({ limit: 1 })).data[0]!.id
    clock.advance(1_000)
    simulator.update('customer', id!, { name: 'Ann' })
    clock.advance(1_000)
    simulator.remove('customer', id!)
    const { data, has_more } = await stripe.events.list({ ending_before: anchor, limit: 100 })
    expect(data.map((event) => event.type)).toEqual(['customer.deleted', 'customer.updated'])
    expect(data[1]!.data.object).toMatchObject({ id, name: 'Ann' })
    expect(data[1]!.data.previous_attributes).toEqual({ name: null })
    expect(has_more).toBe(false)
    expect(await stripe.customers.retrieve(id!)).toMatchObject({ id, deleted: true })
  })

  test('the client expands references of a record, and pages a nested list', async () => {
    const { simulator } = open()
    const method = simulator.create('payment_method', { type: 'card' })
    simulator.create('payment_intent', { payment_method: method, amount: 500 })
    const invoice = simulator.create('invoice', { lines: Array.from({ length: 25 }, (_, n) => ({ amount: n })) })
    await using server = await serve(simulator)
    const stripe = clientOf(server.url)
    const intents = await stripe.paymentIntents.list({ expand: ['data.payment_method'] })
    expect(intents.data[0]!.payment_method).toMatchObject({ id: method, object: 'payment_method' })
    const found = await stripe.invoices.retrieve(invoice)
    expect([found.lines.data.length, found.lines.has_more, found.lines.url]).toEqual([
      10,
      true,
      `/v1/invoices/${invoice}/lines`,
    ])
    const amounts: number[] = []
    for await (const line of stripe.invoices.listLineItems(invoice, { limit: 10 })) amounts.push(line.amount)
    expect(amounts).toEqual(Array.from({ length: 25 }, (_, n) => n))
  })

  test('the client recognises a rate limit, a wrong key and an unknown cursor by its own error classes', async () => {
    const { simulator } = open({ token: 'sk_test_123' })
    simulator.create('customer')
    await using server = await serve(simulator)
    const stripe = clientOf(server.url)
    simulator.faults.plan({ kind: 'rate-limit' })
    await expect(stripe.customers.list()).rejects.toBeInstanceOf(Stripe.errors.StripeRateLimitError)
    await expect(stripe.customers.list({ starting_after: 'cus_none' })).rejects.toMatchObject({
      type: 'StripeInvalidRequestError',
      code: 'resource_missing',
      param: 'starting_after',
      statusCode: 400,
    })
    const { hostname, port } = new URL(server.url)
    const stranger = new Stripe('sk_wrong', {
      host: hostname,
      port: Number(port),
      protocol: 'http',
      maxNetworkRetries: 0,
    })
    await expect(stranger.customers.list()).rejects.toBeInstanceOf(Stripe.errors.StripeAuthenticationError)
  })
})

describe('the rules of a stripe list', () => {
  test('starting_after returns the older ones, ending_before the nearest newer ones, both newest first', async () => {
    const { list, customers } = open()
    const ids = customers(10)
    const page = async (query: string) => {
      const { data, has_more } = await list(`/v1/customers?${query}`)
      return { data: data.map((item) => ids.indexOf(item.id)), has_more }
    }
    expect(await page('limit=3')).toEqual({ data: [9, 8, 7], has_more: true })
    expect(await page(`limit=3&starting_after=${ids[7]}`)).toEqual({ data: [6, 5, 4], has_more: true })
    expect(await page(`limit=3&ending_before=${ids[2]}`)).toEqual({ data: [5, 4, 3], has_more: true })
    expect(await page(`limit=3&ending_before=${ids[7]}`)).toEqual({ data: [9, 8], has_more: false })
    expect(await page(`limit=3&starting_after=${ids[0]}`)).toEqual({ data: [], has_more: false })
  })

  test('records of the same second are ordered by id, not by when they were written', async () => {
    const { simulator, list } = open()
    for (let n = 0; n < 20; n++) simulator.create('customer')
    const ids = (await list('/v1/customers?limit=100')).data.map((item) => item.id)
    expect(ids).toEqual([...ids].sort().toReversed())
  })

  test('the cursor may be a deleted record: its sort key is known', async () => {
    const { simulator, list, customers } = open()
    const ids = customers(4)
    simulator.remove('customer', ids[2]!)
    expect((await list(`/v1/customers?starting_after=${ids[2]}`)).data.map((item) => item.id)).toEqual([ids[1], ids[0]])
  })

  test.each([
    ['/v1/customers?limit=0', 400, { code: 'parameter_invalid_integer', param: 'limit' }],
    ['/v1/customers?limit=101', 400, { code: 'parameter_invalid_integer', param: 'limit' }],
    ['/v1/customers?limit=ten', 400, { code: 'parameter_invalid_integer', param: 'limit' }],
    ['/v1/customers?page=2', 400, { code: 'parameter_unknown', param: 'page' }],
    [
      '/v1/customers?ending_before=cus_x',
      400,
      { code: 'resource_missing', param: 'ending_before', message: "No such customer: 'cus_x'" },
    ],
    [
      '/v1/customers?starting_after=a&ending_before=b',
      400,
      { message: 'Received both starting_after and ending_before parameters. Please pass in only one.' },
    ],
    ['/v1/customers/cus_x', 404, { code: 'resource_missing', param: 'id' }],
    ['/v1/nothing', 404, { type: 'invalid_request_error' }],
    ['/v1/payment_intents?expand[]=payment_method', 400, { type: 'invalid_request_error' }],
  ])('%s answers %i', async (path, status, error) => {
    const response = await open().get(path)
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ error })
    expect(response.headers.get('request-id')).toMatch(/^req_/)
  })

  test('created filters are in seconds', async () => {
    const { list, customers, clock } = open()
    const ids = customers(3)
    const second = Math.floor(clock.now() / 1_000)
    expect(
      (await list(`/v1/customers?created[gte]=${second - 1}&created[lt]=${second}`)).data.map((item) => item.id),
    ).toEqual([ids[1]])
  })
})

describe('the stripe event log', () => {
  test('a late event appears below events that were already read', async () => {
    const { simulator, clock, list } = open()
    simulator.records.lag = { share: 1, maxMs: 8_000 }
    const late = simulator.create('customer')
    simulator.records.lag = { share: 0, maxMs: 0 }
    clock.advance(1_000)
    const early = simulator.create('customer')
    const seen = async () => (await list('/v1/events')).data.map((event) => event.data!.object['id'])
    expect(await seen()).toEqual([early])
    clock.advance(8_000)
    expect(await seen()).toEqual([early, late])
  })

  test('events are kept for thirty days, and an expired one is not a valid cursor', async () => {
    const { clock, get, list, customers } = open()
    customers(1)
    const { id } = (await list('/v1/events')).data[0]!
    clock.advance(30 * 86_400_000)
    expect((await get(`/v1/events?ending_before=${id}`)).status).toBe(200)
    clock.advance(1)
    expect((await list('/v1/events')).data).toEqual([])
    const refused = await get(`/v1/events?ending_before=${id}`)
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { error: { code: 'resource_missing', message: `No such event: '${id}'` } },
    ])
  })

  test('events can be filtered by type, by several types and by a pattern', async () => {
    const { simulator, list, customers } = open()
    const [id] = customers(1)
    simulator.update('customer', id!, { name: 'x' })
    simulator.create('product', { name: 'p' })
    const types = async (query: string) =>
      (await list(`/v1/events?${query}`)).data.map((event) => event.type).toSorted((a, b) => a!.localeCompare(b!))
    expect(await types('type=customer.*')).toEqual(['customer.created', 'customer.updated'])
    expect(await types('types[]=product.created&types[]=customer.updated')).toEqual([
      'customer.updated',
      'product.created',
    ])
  })

  test('replaying the events in timestamp order gives the existing records', async () => {
    const { simulator, clock, random, list } = open({}, 3)
    for (let n = 0; n < 60; n++) {
      clock.advance(1_000)
      churn(simulator, { type: 'customer', writes: 1, random, fields: () => ({ name: `n${n}` }), deletes: 0.2 })
    }
    const rows = new Map<unknown, unknown>()
    for (const event of (await list('/v1/events?limit=100')).data.toReversed()) {
      if (event.type === 'customer.deleted') rows.delete(event.data!.object['id'])
      else rows.set(event.data!.object['id'], event.data!.object)
    }
    expect([...rows.values()]).toEqual(simulator.truth('customer'))
  })
})

describe('faults of the stripe simulator', () => {
  test('has_more can be false, a page can be short, and a cursor can expire', async () => {
    const { simulator, get, list, customers } = open()
    const ids = customers(6)
    simulator.faults.plan({ kind: 'end-flag', value: 'end' })
    expect((await list('/v1/customers?limit=2')).has_more).toBe(false)
    simulator.faults.plan({ kind: 'short-page' })
    const short = await list('/v1/customers?limit=6')
    expect([short.data.length, short.has_more]).toEqual([3, true])
    simulator.faults.plan({ kind: 'expired-token' })
    expect((await get(`/v1/customers?starting_after=${ids[3]}`)).status).toBe(400)
  })

  test('a window of requests is refused with 429 until it opens again', async () => {
    const { clock, get } = open({ rateLimit: { requests: 2, perMs: 1_000 } })
    const statuses = [
      (await get('/v1/customers')).status,
      (await get('/v1/customers')).status,
      (await get('/v1/customers')).status,
    ]
    clock.advance(1_000)
    expect([...statuses, (await get('/v1/customers')).status]).toEqual([200, 200, 429, 200])
  })
})

describe('subscriptions and prices', () => {
  test('items beyond the first ten are listed by the id of their subscription, each with its whole price', async () => {
    const { simulator, get, list } = open()
    const price = simulator.create('price', { unit_amount: 900 })
    const id = simulator.create('subscription', {
      items: Array.from({ length: 12 }, (_, n) => ({ price, quantity: n })),
    })
    const { items } = (await (await get(`/v1/subscriptions/${id}`)).json()) as {
      items: { data: { id: string; price: object }[]; has_more: boolean; url: string }
    }
    expect(items).toMatchObject({ has_more: true, total_count: 12, url: `/v1/subscription_items?subscription=${id}` })
    expect(items.data).toHaveLength(10)
    expect(items.data[0]).toMatchObject({
      object: 'subscription_item',
      subscription: id,
      price: { id: price, object: 'price', unit_amount: 900 },
    })
    const rest = await list(`${items.url}&starting_after=${items.data[9]!.id}`)
    expect([rest.data.length, rest.has_more]).toEqual([2, false])
    expect((await get('/v1/subscription_items')).status).toBe(400)
    expect((await get('/v1/subscription_items?subscription=sub_none')).status).toBe(404)
  })

  test('a cancelled one stays, is listed only on request, and has a final deleted event', async () => {
    const { simulator, list, get } = open()
    const ids = [simulator.create('subscription'), simulator.create('subscription')]
    simulator.remove('subscription', ids[0]!)
    const listed = async (query: string) =>
      (await list(`/v1/subscriptions${query}`)).data.map(({ id }) => id).toSorted()
    expect(await listed('')).toEqual([ids[1]])
    expect(await listed('?status=all')).toEqual(ids.toSorted())
    expect(await listed('?status=canceled')).toEqual([ids[0]])
    expect(await (await get(`/v1/subscriptions/${ids[0]}`)).json()).toMatchObject({ status: 'canceled' })
    expect((await list('/v1/events?type=customer.subscription.deleted')).data).toMatchObject([
      { data: { object: { id: ids[0], status: 'canceled' } } },
    ])
  })

  test('the stripe client pages through the items of a subscription automatically', async () => {
    const { simulator } = open()
    const price = simulator.create('price')
    const id = simulator.create('subscription', { items: Array.from({ length: 25 }, () => ({ price })) })
    await using server = await serve(simulator)
    const items: string[] = []
    for await (const item of clientOf(server.url).subscriptionItems.list({ subscription: id, limit: 10 }))
      items.push(item.price.id)
    expect(items).toEqual(Array.from({ length: 25 }, () => price))
  })
})
