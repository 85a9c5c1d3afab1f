// About 350 bytes of JSON, different for every i; `version` changes the content.
const NOTES =
  'Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore'

export function recordOf(i, version = 0) {
  return {
    id: keyOf(i),
    name: `Customer number ${i}`,
    email: `customer${i}@example.com`,
    city: 'Springfield',
    country: 'US',
    balance: i * 1.5,
    active: i % 3 === 0,
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: `2026-02-01T00:00:0${version % 10}.000Z`,
    notes: NOTES,
  }
}

export function keyOf(i) {
  return `acc_${String(i).padStart(10, '0')}`
}

export function changeOf(i, version = 0) {
  const record = recordOf(i, version)
  return { type: 'upsert', key: record.id, record, upstreamUpdatedAt: record.updated_at }
}

/** The version of a record that a pass lists; null if the pass does not list the record. */
export const PASSES = {
  first: () => 0,
  unchanged: () => 0,
  changed10: (i) => (i % 10 === 0 ? 1 : 0),
  changed100: () => 2,
  sweep1: (i) => (i % 100 === 99 ? null : 2),
}

/** The pages of a pass: each a list of [i, version]. */
export function* pagesOf(pass, count, size) {
  for (let from = 0; from < count; from += size) {
    const page = []
    for (let i = from; i < Math.min(from + size, count); i++) {
      const version = PASSES[pass](i)
      if (version !== null) page.push([i, version])
    }
    yield page
  }
}
