import type { Random } from './kit/ports.ts'
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
import { required } from './kit/required.ts'

/** A simulated account with initial records and a workload. */
export interface Account {
  createSimulator(ports: SimulatorPorts): VendorSimulator
  /**
   * Per type, in this order: how many records there are, and the fields of the nth. One type may need the ids of
   * another.
   */
  readonly types: Readonly<
    Record<
      string,
      { readonly count: number; readonly fields: (n: number, ids: (type: string) => readonly string[]) => Fields }
    >
  >
  /** The type that later writes change. */
  readonly changingTypes: readonly string[]
  /** Its records are never changed or deleted. */
  readonly isAppendOnly?: boolean
  /** Accepted credentials, by the name of the secret; any value when absent. */
  readonly secret?: (name: string) => string
}

/** A vendor with a simulated sample account. */
export type AccountName =
  | 'airtable'
  | 'bookmarks'
  | 'github'
  | 'github-stars'
  | 'kraken'
  | 'hubspot'
  | 'linear'
  | 'salesforce'
  | 'servicenow'
  | 'stripe'

/** The simulated sample accounts, by vendor. */
export const ACCOUNTS: Readonly<Record<AccountName, Account>> = {
  airtable: {
    createSimulator: (ports) => new AirtableSimulator(ports),
    types: { Tasks: { count: 250, fields: (n) => ({ Name: taskOf(n), Points: n % 13 }) } },
    changingTypes: ['Tasks'],
  },
  bookmarks: {
    createSimulator: (ports) => new XSimulator(ports),
    types: {
      bookmark: {
        count: 250,
        fields: (n) => ({ text: `${taskOf(n)}!`, author_id: String(1_000 + (n % 17)), lang: 'en' }),
      },
    },
    changingTypes: ['bookmark'],
  },
  github: {
    createSimulator: (ports) => new GithubSimulator(ports, { pointsPerHour: 5_000_000 }),
    types: {
      repository: {
        count: 6,
        fields: (n) => ({
          name: required(PROJECTS[n % PROJECTS.length], 'PROJECTS[n % PROJECTS.length]'),
          description: `All about the ${required(PROJECTS[n % PROJECTS.length], 'PROJECTS[n % PROJECTS.length]')}`,
        }),
      },
      issue: {
        count: 300,
        fields: (n, ids) => ({
          repository: pickNth(ids('repository'), n),
          title: taskOf(n),
          state: n % 5 === 0 ? 'CLOSED' : 'OPEN',
        }),
      },
    },
    changingTypes: ['issue'],
  },
  'github-stars': {
    createSimulator: (ports) => new GithubStarsSimulator(ports),
    types: {
      star: {
        count: 150,
        fields: (n) => ({
          owner: pickNth(LAST_NAMES, n).toLowerCase(),
          name: `${pickNth(PROJECTS, n)}-${n}`,
          description: `All about the ${pickNth(PROJECTS, n)}`,
        }),
      },
    },
    changingTypes: ['star'],
  },
  hubspot: {
    createSimulator: (ports) => new HubspotSimulator(ports),
    types: {
      contacts: {
        count: 400,
        fields: (n) => ({
          firstname: pickNth(FIRST_NAMES, n),
          lastname: pickNth(LAST_NAMES, n + Math.floor(n / FIRST_NAMES.length)),
          email: emailOf(n),
        }),
      },
      companies: { count: 60, fields: (n) => ({ name: companyOf(n), domain: `${pickNth(PROJECTS, n)}-${n}.example` }) },
    },
    changingTypes: ['contacts', 'contacts', 'contacts', 'contacts', 'contacts', 'companies'],
  },
  kraken: {
    createSimulator: (ports) => new KrakenSimulator(ports),
    types: {
      ledger: { count: 120, fields: (n) => ({ amount: `${n % 40}.0000` }) },
      trade: { count: 60, fields: (n) => ({ price: `${30_000 + n}.00000`, vol: '0.01000000' }) },
    },
    changingTypes: ['ledger', 'trade'],
    isAppendOnly: true,
    secret: (name) => (name.endsWith('SECRET') ? KRAKEN_CREDENTIALS.secret : KRAKEN_CREDENTIALS.key),
  },
  linear: {
    createSimulator: (ports) => new LinearSimulator(ports),
    types: {
      team: { count: 1, fields: () => ({ key: 'SHIP', name: 'Shipping' }) },
      issue: { count: 250, fields: (n, ids) => ({ team: pickNth(ids('team'), n), title: taskOf(n) }) },
    },
    changingTypes: ['issue'],
  },
  salesforce: {
    createSimulator: (ports) => new SalesforceSimulator(ports),
    types: {
      Account: {
        count: 250,
        fields: (n) => ({ Name: companyOf(n), Industry: pickNth(['Energy', 'Media', 'Shipping'], n) }),
      },
    },
    changingTypes: ['Account'],
  },
  servicenow: {
    createSimulator: (ports) => new ServicenowSimulator(ports),
    types: {
      incident: {
        count: 250,
        fields: (n) => ({
          number: `INC${String(n).padStart(7, '0')}`,
          short_description: taskOf(n),
          state: String(1 + (n % 6)),
          active: String(n % 6 < 5),
        }),
      },
    },
    changingTypes: ['incident'],
  },
  stripe: {
    createSimulator: (ports) => new StripeSimulator(ports),
    types: {
      customer: {
        count: 500,
        fields: (n) => ({
          name: `${pickNth(FIRST_NAMES, n)} ${pickNth(LAST_NAMES, n + 3)}`,
          email: emailOf(n),
          balance: (n % 9) * 500,
        }),
      },
      product: { count: 40, fields: (n) => ({ name: `The ${pickNth(PROJECTS, n)}`, active: n % 7 > 0 }) },
    },
    changingTypes: ['customer', 'customer', 'customer', 'customer', 'customer', 'customer', 'customer', 'product'],
  },
}

/** Creates the records of a sample account. */
export function fillAccount(vendor: VendorSimulator, { types }: Account): void {
  for (const [type, { count, fields }] of Object.entries(types)) {
    const ids = createIdLookup(vendor)
    for (let n = 0; n < count; n++) vendor.create(type, fields(n, ids))
  }
}

/**
 * The nth write: mostly an update, occasionally a create or a delete; the number of records stays near the initial one.
 */
export function applyWrite(
  vendor: VendorSimulator,
  { types, changingTypes: busy, isAppendOnly: grows = false }: Account,
  n: number,
  random: Random,
): void {
  const type = required(busy[n % busy.length], 'busy[n % busy.length]')
  const { count, fields } = required(types[type], 'types[type]')
  const deletes = vendor.records.current(type).length > count ? 0.35 : 0.05
  churn(vendor, {
    type,
    writes: 1,
    random,
    ...(grows ? { updates: 0, deletes: 0 } : { updates: 0.6, deletes }),
    fields: () => fields(count + Math.floor(random.next() * 10_000), createIdLookup(vendor)),
  })
}

/** Each type is looked up once: its result does not change meanwhile. */
function createIdLookup(vendor: VendorSimulator): (type: string) => readonly string[] {
  const known = new Map<string, readonly string[]>()
  return (type) => {
    if (!known.has(type))
      known.set(
        type,
        vendor.records.current(type).map(({ id }) => id),
      )
    return required(known.get(type), 'an entry of known')
  }
}

const FIRST_NAMES = [
  'Ada',
  'Blaise',
  'Chien',
  'Dorothy',
  'Edsger',
  'Frances',
  'Grace',
  'Hedy',
  'Ivan',
  'Joan',
  'Katherine',
  'Leslie',
  'Mary',
  'Niklaus',
  'Olga',
  'Parisa',
  'Radia',
  'Sophie',
]
const LAST_NAMES = [
  'Alvarez',
  'Bianchi',
  'Castro',
  'Dahl',
  'Eze',
  'Fischer',
  'Grieg',
  'Haddad',
  'Ito',
  'Jensen',
  'Kowalski',
  'Lindgren',
  'Moreau',
  'Nakamura',
  'Okafor',
  'Petrov',
  'Quispe',
  'Rossi',
  'Silva',
]
const PROJECTS = [
  'anchor',
  'beacon',
  'compass',
  'dock',
  'ebb',
  'ferry',
  'gangway',
  'harbour',
  'inlet',
  'jetty',
  'keel',
  'lighthouse',
]
const TASKS = ['Check', 'Paint', 'Repair', 'Replace', 'Measure', 'Move', 'Order', 'Inspect']

function taskOf(n: number): string {
  return `${pickNth(TASKS, n)} the ${pickNth(PROJECTS, Math.floor(n / TASKS.length))}`
}

function companyOf(n: number): string {
  return `${pickNth(LAST_NAMES, n)} ${pickNth(['Shipping', 'Logistics', '& Sons', 'Marine', 'Lines'], Math.floor(n / 3))}`
}

function emailOf(n: number): string {
  return `${pickNth(FIRST_NAMES, n).toLowerCase()}.${n}@example.com`
}

function pickNth<T>(from: readonly T[], n: number): T {
  return required(from[n % from.length], 'from[n % from.length]')
}
