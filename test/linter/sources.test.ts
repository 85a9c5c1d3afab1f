import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { Worker } from '../../src/worker/worker.ts'
import { checkWorker } from '../../src/linter/index.ts'
import { airtable } from '../../src/sources/airtable/source.ts'
import { github } from '../../src/sources/github/source.ts'
import { hubspot } from '../../src/sources/hubspot/source.ts'
import { linear } from '../../src/sources/linear/source.ts'
import { salesforce } from '../../src/sources/salesforce/source.ts'
import { servicenow } from '../../src/sources/servicenow/source.ts'
import { stripe } from '../../src/sources/stripe/source.ts'
import {
  AirtableSimulator,
  createSimulatorFetch,
  GithubSimulator,
  HubspotSimulator,
  LinearSimulator,
  SalesforceSimulator,
  ServicenowSimulator,
  StripeSimulator,
  type SimulatorPorts,
  type VendorSimulator,
} from '../../simulators/src/index.ts'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import { MINUTE, EngineFixture } from '../engine/engine-fixture.ts'

const folder = mkdtempSync(join(tmpdir(), 'tidemark-linter-sources-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Case {
  readonly simulator: (ports: SimulatorPorts) => VendorSimulator
  readonly fill: (vendor: VendorSimulator) => void
  readonly declare: (worker: Worker) => void
}

const many = (vendor: VendorSimulator, type: string, more: Record<string, string> = {}): void => {
  for (let n = 0; n < 230; n++)
    vendor.create(type, { name: `n${n}`, title: `t${n}`, email: `e${n}@example.com`, ...more })
}

const CASES: Record<string, Case> = {
  salesforce: {
    simulator: (ports) => new SalesforceSimulator(ports),
    fill: (vendor) => many(vendor, 'Account'),
    declare: (worker) =>
      void worker.track('rows', {
        database: worker.database('rows'),
        source: salesforce({ instanceUrl: 'https://example.my.salesforce.com', accessToken: 'T' }).object('Account'),
      }),
  },
  stripe: {
    simulator: (ports) => new StripeSimulator(ports),
    fill: (vendor) => many(vendor, 'customer'),
    declare: (worker) =>
      void worker.track('rows', { database: worker.database('rows'), source: stripe({ apiKey: 'T' }).customers }),
  },
  hubspot: {
    simulator: (ports) => new HubspotSimulator(ports),
    fill: (vendor) => many(vendor, 'contacts'),
    declare: (worker) =>
      void worker.track('rows', { database: worker.database('rows'), source: hubspot({ accessToken: 'T' }).contacts }),
  },
  servicenow: {
    simulator: (ports) => new ServicenowSimulator(ports),
    fill: (vendor) => many(vendor, 'incident'),
    declare: (worker) =>
      void worker.track('rows', {
        database: worker.database('rows'),
        source: servicenow({ instanceUrl: 'https://example.service-now.com', user: 'U', password: 'P' }).table(
          'incident',
        ),
      }),
  },
  github: {
    simulator: (ports) => new GithubSimulator(ports, { viewer: 'me', organizations: ['acme'] }),
    fill: (vendor) => many(vendor, 'issue', { repository: vendor.create('repository', { name: 'r', owner: 'acme' }) }),
    declare: (worker) =>
      void worker.sync('rows', { database: worker.database('rows'), ...github({ token: 'T', owner: 'acme' }).issues }),
  },
  linear: {
    simulator: (ports) => new LinearSimulator(ports),
    fill: (vendor) => many(vendor, 'issue', { team: vendor.create('team', { name: 'Team', key: 'T' }) }),
    declare: (worker) =>
      void worker.sync('rows', { database: worker.database('rows'), ...linear({ apiKey: 'T' }).issues }),
  },
  airtable: {
    simulator: (ports) => new AirtableSimulator(ports, { baseId: 'appX', tables: ['Tasks'] }),
    fill: (vendor) => many(vendor, 'Tasks'),
    declare: (worker) =>
      void worker.sync('rows', {
        database: worker.database('rows'),
        ...airtable({ baseId: 'appX', token: 'T' }).table('Tasks'),
      }),
  },
}

test.each(Object.entries(CASES))(
  '%s: the linter has nothing against its source, and read something',
  async (name, { simulator, fill, declare }) => {
    const scene = await EngineFixture.open()
    const vendor = simulator({ clock: scene.clock, random: new RandomStream(1, 'vendor') })
    fill(vendor)
    scene.clock.step(2 * MINUTE)
    const worker = new Worker({ name })
    declare(worker)
    const workerFile = join(folder, `${name}.ts`)
    writeFileSync(workerFile, '')
    const { syncs } = await scene.clock.drive(
      checkWorker(worker, {
        ports: scene.ports,
        secrets: { get: (secret) => secret },
        fetch: createSimulatorFetch(vendor),
        pagesMax: 20,
        workerFile,
      }),
    )
    expect(
      syncs.flatMap(({ sync, findings }) =>
        findings.filter(({ severity }) => severity !== 'note').map((finding) => ({ sync, ...finding })),
      ),
    ).toEqual([])
    expect(syncs[0]!.changes).toBeGreaterThanOrEqual(230)
    await scene.close()
  },
)
