import type { Random } from '../../contract/index.ts'
import { AirtableSimulator } from './airtable/simulator.ts'
import { GithubSimulator } from './github/simulator.ts'
import { GithubStarsSimulator } from './github-stars/simulator.ts'
import { HubspotSimulator } from './hubspot/simulator.ts'
import { churn } from './kit/churn.ts'
import type { Fields, SimulatorPorts } from './kit/simulator.ts'
import type { VendorSimulator } from './kit/vendor-simulator.ts'
import { KRAKEN_CREDENTIALS, KrakenSimulator } from './kraken/simulator.ts'
import { LinearSimulator } from './linear/simulator.ts'
import { SalesforceSimulator } from './salesforce/simulator.ts'
import { ServicenowSimulator } from './servicenow/simulator.ts'
import { StripeSimulator } from './stripe/simulator.ts'
import { XSimulator } from './x/simulator.ts'

/** An account with something in it, and what happens to it. */
export interface Account {
  make(ports: SimulatorPorts): VendorSimulator
  /** Of each type, in this order: how many there are, and what the nth looks like. One type may need the ids of another. */
  readonly types: Readonly<Record<string, { readonly count: number; readonly fields: (n: number, ids: (type: string) => readonly string[]) => Fields }>>
  /** What is written to from then on. */
  readonly busy: readonly string[]
  /** Nothing in it is ever changed or deleted. */
  readonly grows?: boolean
  /** What it is opened with, by the name of the secret; anything will do unless given. */
  readonly secret?: (name: string) => string
}

export type AccountName = 'airtable' | 'bookmarks' | 'github' | 'github-stars' | 'kraken' | 'hubspot' | 'linear' | 'salesforce' | 'servicenow' | 'stripe'

export const ACCOUNTS: Readonly<Record<AccountName, Account>> = {
  airtable: {
    make: (ports) => new AirtableSimulator(ports),
    types: { Tasks: { count: 250, fields: (n) => ({ Name: taskOf(n), Points: n % 13 }) } },
    busy: ['Tasks'],
  },
  bookmarks: {
    make: (ports) => new XSimulator(ports),
    types: { bookmark: { count: 250, fields: (n) => ({ text: `${taskOf(n)}!`, author_id: String(1_000 + (n % 17)), lang: 'en' }) } },
    busy: ['bookmark'],
  },
  github: {
    make: (ports) => new GithubSimulator(ports, { pointsPerHour: 5_000_000 }),
    types: {
      repository: { count: 6, fields: (n) => ({ name: PROJECTS[n % PROJECTS.length]!, description: `All about the ${PROJECTS[n % PROJECTS.length]!}` }) },
      issue: { count: 300, fields: (n, ids) => ({ repository: pick(ids('repository'), n), title: taskOf(n), state: n % 5 === 0 ? 'CLOSED' : 'OPEN' }) },
    },
    busy: ['issue'],
  },
  'github-stars': {
    make: (ports) => new GithubStarsSimulator(ports),
    types: { star: { count: 150, fields: (n) => ({ owner: pick(LAST_NAMES, n).toLowerCase(), name: `${pick(PROJECTS, n)}-${n}`, description: `All about the ${pick(PROJECTS, n)}` }) } },
    busy: ['star'],
  },
  hubspot: {
    make: (ports) => new HubspotSimulator(ports),
    types: {
      contacts: { count: 400, fields: (n) => ({ firstname: pick(FIRST_NAMES, n), lastname: pick(LAST_NAMES, n + Math.floor(n / FIRST_NAMES.length)), email: emailOf(n) }) },
      companies: { count: 60, fields: (n) => ({ name: companyOf(n), domain: `${pick(PROJECTS, n)}-${n}.example` }) },
    },
    busy: ['contacts', 'contacts', 'contacts', 'contacts', 'contacts', 'companies'],
  },
  kraken: {
    make: (ports) => new KrakenSimulator(ports),
    types: { ledger: { count: 120, fields: (n) => ({ amount: `${n % 40}.0000` }) }, trade: { count: 60, fields: (n) => ({ price: `${30_000 + n}.00000`, vol: '0.01000000' }) } },
    busy: ['ledger', 'trade'],
    grows: true,
    secret: (name) => (name.endsWith('SECRET') ? KRAKEN_CREDENTIALS.secret : KRAKEN_CREDENTIALS.key),
  },
  linear: {
    make: (ports) => new LinearSimulator(ports),
    types: {
      team: { count: 1, fields: () => ({ key: 'SHIP', name: 'Shipping' }) },
      issue: { count: 250, fields: (n, ids) => ({ team: pick(ids('team'), n), title: taskOf(n) }) },
    },
    busy: ['issue'],
  },
  salesforce: {
    make: (ports) => new SalesforceSimulator(ports),
    types: { Account: { count: 250, fields: (n) => ({ Name: companyOf(n), Industry: pick(['Energy', 'Media', 'Shipping'], n) }) } },
    busy: ['Account'],
  },
  servicenow: {
    make: (ports) => new ServicenowSimulator(ports),
    types: { incident: { count: 250, fields: (n) => ({ number: `INC${String(n).padStart(7, '0')}`, short_description: taskOf(n), state: String(1 + (n % 6)), active: String(n % 6 < 5) }) } },
    busy: ['incident'],
  },
  stripe: {
    make: (ports) => new StripeSimulator(ports),
    types: {
      customer: { count: 500, fields: (n) => ({ name: `${pick(FIRST_NAMES, n)} ${pick(LAST_NAMES, n + 3)}`, email: emailOf(n), balance: (n % 9) * 500 }) },
      product: { count: 40, fields: (n) => ({ name: `The ${pick(PROJECTS, n)}`, active: n % 7 > 0 }) },
    },
    busy: ['customer', 'customer', 'customer', 'customer', 'customer', 'customer', 'customer', 'product'],
  },
}

export function fillAccount(vendor: VendorSimulator, { types }: Account): void {
  for (const [type, { count, fields }] of Object.entries(types)) {
    const ids = idsOf(vendor)
    for (let n = 0; n < count; n++) vendor.create(type, fields(n, ids))
  }
}

/** The nth write: mostly an edit, now and then a birth or a death, and there are never many more or fewer than at first. */
export function writeOnce(vendor: VendorSimulator, { types, busy, grows = false }: Account, n: number, random: Random): void {
  const type = busy[n % busy.length]!
  const { count, fields } = types[type]!
  const deletes = vendor.records.current(type).length > count ? 0.35 : 0.05
  churn(vendor, { type, writes: 1, random, ...(grows ? { updates: 0, deletes: 0 } : { updates: 0.6, deletes }), fields: () => fields(count + Math.floor(random.next() * 10_000), idsOf(vendor)) })
}

/** Each type is looked up once: what is asked for does not change meanwhile. */
function idsOf(vendor: VendorSimulator): (type: string) => readonly string[] {
  const known = new Map<string, readonly string[]>()
  return (type) => {
    if (!known.has(type)) known.set(type, vendor.records.current(type).map(({ id }) => id))
    return known.get(type)!
  }
}

const FIRST_NAMES = ['Ada', 'Blaise', 'Chien', 'Dorothy', 'Edsger', 'Frances', 'Grace', 'Hedy', 'Ivan', 'Joan', 'Katherine', 'Leslie', 'Mary', 'Niklaus', 'Olga', 'Parisa', 'Radia', 'Sophie']
const LAST_NAMES = ['Alvarez', 'Bianchi', 'Castro', 'Dahl', 'Eze', 'Fischer', 'Grieg', 'Haddad', 'Ito', 'Jensen', 'Kowalski', 'Lindgren', 'Moreau', 'Nakamura', 'Okafor', 'Petrov', 'Quispe', 'Rossi', 'Silva']
const PROJECTS = ['anchor', 'beacon', 'compass', 'dock', 'ebb', 'ferry', 'gangway', 'harbour', 'inlet', 'jetty', 'keel', 'lighthouse']
const TASKS = ['Check', 'Paint', 'Repair', 'Replace', 'Measure', 'Move', 'Order', 'Inspect']

function taskOf(n: number): string {
  return `${pick(TASKS, n)} the ${pick(PROJECTS, Math.floor(n / TASKS.length))}`
}

function companyOf(n: number): string {
  return `${pick(LAST_NAMES, n)} ${pick(['Shipping', 'Logistics', '& Sons', 'Marine', 'Lines'], Math.floor(n / 3))}`
}

function emailOf(n: number): string {
  return `${pick(FIRST_NAMES, n).toLowerCase()}.${n}@example.com`
}

function pick<T>(from: readonly T[], n: number): T {
  return from[n % from.length]!
}
