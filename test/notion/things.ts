/** The stored rows of workers/every-kind.ts. */
export const FULL = {
  Name: 'Full',
  ID: 'full',
  Note: 'See [the page](https://example.com), due 2026-05-01',
  Amount: 12.5,
  Day: '2026-01-31',
  Meeting: '2026-01-31T09:30[Europe/Berlin]',
  Trip: '2026-02-01/2026-02-14',
  Kind: 'a',
  Tags: ['red', 'blue'],
  Stage: 'New',
  Done: true,
  Site: 'https://example.com/full',
  Mail: 'full@example.com',
  Phone: '+49 30 123',
  Parts: ['empty', 'sparse'],
  Owners: ['ada@example.com', 'alan@example.com'],
  Where: { lat: 52.5, lon: 13.4, name: 'Berlin' },
  Papers: [{ name: 'A', url: 'https://example.com/a.pdf' }],
  _icon: 'notion:rocket:blue',
  _cover: 'https://example.com/cover.png',
  _content: 'Hello, **world**',
}
/** The columns of the page itself are there only when a change has them. */
export const NOTHING: Readonly<Record<string, unknown>> = Object.fromEntries(
  Object.keys(FULL).map((name) => [name, null]),
)
export const EMPTY = { ...NOTHING, Name: '', ID: 'empty', Tags: [], Done: false, Parts: [], Owners: [], Papers: [] }
