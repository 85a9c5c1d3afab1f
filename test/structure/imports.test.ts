import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { DestinationDescriptor } from '../../src/destinations/kit/define-destination.ts'
import { DESTINATIONS } from '../../src/destinations/registry.ts'
import type { SourceDescriptor } from '../../src/sources/kit/define-source.ts'
import { SOURCES } from '../../src/sources/registry.ts'

const SOURCE_NAMES = Object.keys(SOURCES)

/** The folders that every source may import. Its packages are in its descriptor. */
const SOURCE_FOLDERS = ['redaction', 'contract', 'values', 'sources/kit', 'strategies']

/** The only source that uses another: it lists tables like the SQL source. */
const SOURCES_OF_SOURCES: Record<string, string[]> = { 'postgres-cdc': ['sources/sql'] }

const DESTINATION_NAMES = Object.keys(DESTINATIONS)

/** The folders that every destination may import. Its packages are in its descriptor. */
const DESTINATION_FOLDERS = ['redaction', 'contract', 'values', 'http', 'export', 'destinations/kit', 'stores/kit']
/** COPY and the types of the driver are in the store of the same database; requests are signed as webhooks are. */
const OTHER_DESTINATION_FOLDERS: Readonly<Record<string, readonly string[]>> = {
  http: ['webhooks', 'webhooks/verify'],
  postgres: ['stores/postgres'],
}

/**
 * Allowed imports between folders. Dependencies go from left to right only: a folder that is not named here may not be
 * imported.
 */
const TABLE: Record<string, { folders: string[]; packages: string[] }> = {
  contract: { folders: [], packages: [] },
  values: { folders: ['contract'], packages: [] },
  telemetry: { folders: ['contract'], packages: [] },
  redaction: { folders: ['contract', 'values'], packages: ['node:crypto'] },
  registry: { folders: ['redaction', 'contract', 'values'], packages: ['node:crypto'] },
  transforms: { folders: ['contract', 'values', 'registry'], packages: ['node:crypto'] },
  engine: {
    folders: ['redaction', 'contract', 'values', 'telemetry', 'registry', 'transforms'],
    packages: ['node:crypto', 'node:events'],
  },
  strategies: { folders: ['contract', 'values'], packages: [] },
  http: { folders: ['contract'], packages: ['node:stream', 'node:zlib'] },
  'sources/kit': {
    folders: ['redaction', 'contract', 'values', 'http'],
    packages: ['node:crypto', 'node:util', 'node:zlib'],
  },
  'sources/kit/postgres': { folders: ['contract', 'values'], packages: ['pg'] },
  connector: {
    folders: ['redaction', 'contract', 'values', 'registry', 'sources/kit'],
    packages: ['node:crypto', 'node:fs/promises', 'node:path'],
  },
  ...Object.fromEntries(
    Object.values<SourceDescriptor>(SOURCES).map(({ name, packages = [] }) => [
      `sources/${name}`,
      {
        folders: [
          ...SOURCE_FOLDERS,
          ...(packages.includes('pg') ? ['sources/kit/postgres'] : []),
          ...(SOURCES_OF_SOURCES[name] ?? []),
        ],
        packages: [...packages],
      },
    ]),
  ),
  sources: { folders: SOURCE_NAMES.map((name) => `sources/${name}`), packages: [] },
  stores: {
    folders: [
      'redaction',
      'contract',
      'values',
      'registry',
      'config',
      'stores/kit',
      'stores/sqlite',
      'stores/postgres',
    ],
    packages: ['node:crypto', 'node:module', 'node:path', 'node:url', 'jiti'],
  },
  'stores/kit': { folders: ['redaction', 'contract', 'values', 'registry'], packages: ['node:crypto'] },
  'stores/sqlite': {
    folders: ['contract', 'values', 'stores/kit'],
    packages: [
      'node:child_process',
      'node:crypto',
      'node:fs',
      'node:path',
      'node:url',
      'node:worker_threads',
      '@photostructure/sqlite',
    ],
  },
  'stores/postgres': {
    folders: ['redaction', 'contract', 'values', 'registry', 'stores/kit'],
    packages: ['node:crypto', 'pg'],
  },
  platform: {
    folders: ['redaction', 'contract', 'values', 'http'],
    packages: [
      'node:child_process',
      'node:path',
      'node:async_hooks',
      'node:crypto',
      'node:os',
      'node:timers/promises',
      'node:fs',
      'node:process',
      'node:stream',
      'node:stream/web',
      'node:zlib',
      'node:dns',
      'node:net',
      'node:util',
      'undici',
      '@opentelemetry/api',
    ],
  },
  'config/manifest': {
    folders: [
      'redaction',
      'contract',
      'transforms',
      'values',
      'config',
      'worker',
      'connector',
      'sources',
      'sources/kit',
      'destinations',
      'destinations/kit',
    ],
    packages: ['node:fs', 'node:path', 'node:util', 'ajv', 'yaml'],
  },
  config: {
    folders: ['redaction', 'contract', 'values', 'registry', 'platform'],
    packages: ['node:crypto', 'node:fs', 'node:path', 'node:util', 'croner'],
  },
  worker: {
    folders: [
      '.',
      'connections',
      'contract',
      'values',
      'transforms',
      'engine',
      'platform',
      'config',
      'config/manifest',
      'worker/notion',
      'stores',
      'webhooks',
      'webhooks/verify',
      'destinations/loop',
    ],
    packages: ['node:fs', 'node:module', 'node:path', 'node:url', 'ajv', 'jiti'],
  },
  'worker/notion': {
    folders: ['contract', 'values', 'engine', 'config', 'worker'],
    packages: ['node:async_hooks', 'node:fs', 'node:module', 'node:path', 'node:url'],
  },
  runner: {
    folders: ['redaction', 'contract', 'values', 'telemetry', 'engine', 'config', 'worker', 'platform', 'transforms'],
    packages: [],
  },
  'runner/restate': {
    folders: ['contract', 'values', 'engine', 'platform', 'runner'],
    packages: [
      'node:child_process',
      'node:crypto',
      'node:events',
      'node:fs',
      'node:fs/promises',
      'node:http2',
      'node:module',
      'node:net',
      'node:path',
      'node:timers/promises',
      '@restatedev/restate-sdk',
    ],
  },
  feed: { folders: ['contract', 'values'], packages: ['node:crypto'] },
  'destinations/kit': { folders: ['contract', 'values', 'stores/kit'], packages: [] },
  'destinations/loop': {
    folders: ['redaction', 'contract', 'values', 'telemetry', 'engine', 'config', 'runner'],
    packages: [],
  },
  ...Object.fromEntries(
    Object.values<DestinationDescriptor>(DESTINATIONS).map(({ name, packages }) => [
      `destinations/${name}`,
      {
        folders: [
          ...DESTINATION_FOLDERS,
          ...(OTHER_DESTINATION_FOLDERS[name] ?? []),
          // The client of a system that is also a source.
          ...(SOURCE_NAMES.includes(name) ? [`sources/${name}`] : []),
        ],
        packages: [...packages],
      },
    ]),
  ),
  destinations: { folders: DESTINATION_NAMES.map((name) => `destinations/${name}`), packages: [] },
  'connections/providers': { folders: ['connections'], packages: [] },
  'connections/oauth': {
    folders: ['redaction', 'contract', 'sources/kit', 'connections'],
    packages: ['node:crypto'],
  },
  'connections/connect': {
    folders: ['redaction', 'contract', 'values', 'platform', 'sources/kit', 'connections', 'connections/oauth'],
    packages: ['node:crypto'],
  },
  connections: {
    folders: [
      'redaction',
      'contract',
      'values',
      'platform',
      'sources/kit',
      'sources/kraken',
      'connections/providers',
      'connections/oauth',
      'connections/connect',
      'config',
      'sources',
    ],
    packages: [],
  },
  'webhooks/verify': { folders: ['contract', 'webhooks'], packages: ['node:crypto'] },
  verify: {
    folders: ['contract', 'values', 'engine', 'config', 'runner', 'stores/kit', 'worker'],
    packages: ['node:crypto'],
  },
  webhooks: {
    folders: ['redaction', 'contract', 'values', 'telemetry', 'feed', 'engine', 'platform', 'webhooks/verify'],
    packages: ['node:crypto', 'node:dns', 'node:net', 'node:util', 'undici'],
  },
  server: {
    folders: [
      'connections',
      'connections/connect',
      'redaction',
      'contract',
      'values',
      'telemetry',
      'config/manifest',
      'feed',
      'engine',
      'registry',
      'platform',
      'runner',
      'verify',
      'webhooks',
      'destinations/loop',
      'export',
    ],
    packages: [
      'node:crypto',
      'node:fs',
      'node:fs/promises',
      'node:http',
      'node:net',
      'node:os',
      'node:path',
      'node:stream',
      'node:url',
      'node:util',
      'node:zlib',
      'ajv',
      'fastify',
      '@fastify/compress',
      'prom-client',
    ],
  },
  embed: {
    folders: [
      'connections',
      'connections/connect',
      'redaction',
      'contract',
      'values',
      'engine',
      'config',
      'worker',
      'platform',
      'runner',
      'runner/restate',
      'server',
      'verify',
      'webhooks',
      'destinations/loop',
      'stores',
    ],
    packages: ['node:crypto', 'node:events', 'node:http', 'node:os', 'node:stream'],
  },
  mcp: {
    folders: ['redaction', 'contract', 'values', 'runner', 'stores/kit'],
    packages: [
      'node:stream',
      'ajv',
      '@modelcontextprotocol/sdk/server/index.js',
      '@modelcontextprotocol/sdk/server/stdio.js',
      '@modelcontextprotocol/sdk/types.js',
    ],
  },
  typings: { folders: ['contract'], packages: [] },
  export: { folders: ['contract', 'values'], packages: ['node:fs', 'node:path', 'hyparquet-writer'] },
  client: { folders: ['contract', 'values'], packages: [] },
  'sources/rest/openapi': { folders: ['contract'], packages: ['node:fs', 'yaml'] },
  'client/node': { folders: ['client'], packages: ['node:fs/promises', 'node:path'] },
  'testing/simulation/vendors': {
    folders: [
      'contract',
      'values',
      'engine',
      'worker',
      'runner',
      'stores/sqlite',
      'testing',
      'sources/airtable',
      'sources/github',
      'sources/hubspot',
      'sources/kit',
      'sources/linear',
      'sources/odata',
      'sources/rest',
      'sources/salesforce',
      'sources/servicenow',
      'sources/stripe',
    ],
    packages: ['@tidemark/simulators'],
  },
  testing: {
    folders: [
      'contract',
      'values',
      'engine',
      'registry',
      'platform',
      'config',
      'worker',
      'stores/sqlite',
      'stores/kit',
      'runner',
      'destinations/loop',
      'testing/simulation/vendors',
    ],
    packages: [
      '@photostructure/sqlite',
      'node:assert/strict',
      'node:crypto',
      'node:http',
      'node:net',
      'node:stream',
      'node:test',
      'node:timers/promises',
      'node:url',
      'node:util',
    ],
  },
  cli: {
    folders: ['redaction', 'engine', 'config', 'platform', 'stores', 'cli/kit', 'cli/verbs'],
    packages: ['node:stream', 'commander'],
  },
  'cli/verbs': {
    folders: [
      'connections',
      'redaction',
      'contract',
      'values',
      'telemetry',
      'strategies',
      'engine',
      'registry',
      'config',
      'config/manifest',
      'worker',
      'platform',
      'runner',
      'runner/restate',
      'server',
      'verify',
      'webhooks',
      'destinations',
      'destinations/kit',
      'destinations/loop',
      'testing',
      'testing/simulation/vendors',
      'advisor',
      'probe',
      'sources/airbyte',
      'sources/kit',
      'linter',
      'mcp',
      'typings',
      'export',
      'embed',
      'stores',
      'cli',
      'cli/kit',
    ],
    packages: [
      'node:crypto',
      'node:fs',
      'node:os',
      'node:path',
      'node:readline/promises',
      'node:stream',
      'commander',
      '@clack/prompts',
    ],
  },
  'cli/kit': {
    folders: [
      'connections',
      'redaction',
      'contract',
      'values',
      'registry',
      'transforms',
      'strategies',
      'engine',
      'config',
      'config/manifest',
      'worker',
      'platform',
      'runner',
      'runner/restate',
      'server',
      'verify',
      'webhooks',
      'webhooks/verify',
      'destinations/duckdb',
      'destinations/kit',
      'destinations/loop',
      'testing',
      'advisor',
      'probe',
      'sources',
      'sources/airbyte',
      'sources/kit',
      'sources/rest',
      'sources/rest/openapi',
      'stores',
      'cli',
    ],
    packages: [
      'node:fs',
      'node:http',
      'node:net',
      'node:os',
      'node:path',
      'node:readline/promises',
      'node:stream',
      'node:url',
      'node:util',
      'commander',
      'picocolors',
      '@tidemark/simulators',
      'yaml',
    ],
  },
  advisor: { folders: ['values', 'sources', 'sources/kit'], packages: [] },
  probe: {
    folders: [
      'redaction',
      'contract',
      'values',
      'engine',
      'advisor',
      'sources/kit',
      'sources/rest',
      'sources/rest/openapi',
    ],
    packages: [],
  },
  linter: {
    folders: ['contract', 'values', 'engine', 'worker', 'stores/sqlite'],
    packages: ['node:crypto', 'node:fs', 'node:path', 'node:url'],
  },
  '.': {
    folders: [
      'contract',
      'values',
      'transforms',
      'engine',
      'strategies',
      'config',
      'worker',
      'stores',
      'webhooks',
      'webhooks/verify',
    ],
    packages: [],
  },
}

/** Folders that access time, randomness, the network and the environment only through ports. */
const PURE = [
  'contract',
  'values',
  'telemetry',
  'advisor',
  'probe',
  'typings',
  'registry',
  'transforms',
  'engine',
  'strategies',
  'sources',
  'sources/kit',
  'sources/kit/postgres',
  // A source that starts a process needs its environment and timers.
  ...Object.values<SourceDescriptor>(SOURCES).flatMap(({ name, packages = [] }) =>
    packages.includes('node:child_process') ? [] : [`sources/${name}`],
  ),
  'stores/kit',
  'runner',
  'feed',
  'destinations/kit',
  'destinations/loop',
]
const IMPURE = [
  /\bDate\.now\b/,
  /\bnew Date\(\)/,
  /\bMath\.random\b/,
  /\bset(?:Timeout|Interval|Immediate)\b/,
  /\bperformance\./,
  /\bprocess\./,
  /\bglobalThis\b/,
  /(?<![.\w#])fetch\(/,
  /\brandom(?:UUID|Bytes|Int)\b/,
  /\bcrypto\.getRandomValues\b/,
  /\bqueueMicrotask\b/,
]

const root = resolve(import.meta.dirname, '../../src')
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
const folders = Object.keys(TABLE).toSorted((a, b) => b.length - a.length)

describe('the import table', () => {
  test('every source file is in a folder of the table', () => {
    expect(files.filter((file) => folderOf(file) === undefined)).toEqual([])
  })

  test('no folder imports another than the table allows', () => {
    const offences: string[] = []
    for (const file of files) {
      const from = folderOf(file)!
      for (const target of importsOf(file)) {
        if (target.startsWith('.')) {
          const to = folderOf(relative(root, resolve(root, dirname(file), target)))
          if (to !== from && !TABLE[from]!.folders.includes(to ?? '?')) offences.push(`${file} imports ${target}`)
        } else if (!TABLE[from]!.packages.includes(target)) offences.push(`${file} imports ${target}`)
      }
    }
    expect(offences).toEqual([])
  })

  test('the check can fail: a store that imports its sibling is found', () => {
    expect(TABLE['stores/sqlite']!.folders).not.toContain('stores/postgres')
    expect(importsIn("import { x } from '../postgres/store.ts'\nexport * from './y.ts'\nawait import('pg')")).toEqual([
      '../postgres/store.ts',
      './y.ts',
      'pg',
    ])
  })
})

describe('the simulators', () => {
  const source = resolve(root, '../simulators/src')
  const PACKAGES = ['pg', '@photostructure/sqlite']
  /** A simulator plays the documentation of its vendor. With code of the source it would share its mistakes. */
  const offencesOf = (file: string, code: string): string[] =>
    importsIn(code)
      .filter((target) =>
        target.startsWith('.')
          ? !resolve(source, dirname(file), target).startsWith(`${source}/`)
          : !target.startsWith('node:') && !PACKAGES.includes(target),
      )
      .map((target) => `${file} imports ${target}`)

  test('import their packages and each other, and nothing of the engine or the sources', () => {
    const found = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
    expect(found.length).toBeGreaterThan(60)
    expect(found.flatMap((file) => offencesOf(file, readFileSync(join(source, file), 'utf8')))).toEqual([])
  })

  test('the check can fail', () => {
    expect(
      offencesOf(
        'stripe/list.ts',
        "import { SyncError } from '../../../src/contract/index.ts'\nimport { stripe } from 'tidemark/sources/stripe'\nimport { x } from '../kit/ids.ts'",
      ),
    ).toEqual([
      'stripe/list.ts imports ../../../src/contract/index.ts',
      'stripe/list.ts imports tidemark/sources/stripe',
    ])
  })
})

describe('the console', () => {
  const source = resolve(root, '../console/src')
  const PACKAGES = ['react', 'react-dom/client', '@tanstack/react-query', 'wouter', 'uplot']
  /** Imports beyond itself and its packages, and non-type imports from the server. */
  const offencesOf = (file: string, code: string): string[] =>
    importsIn(code)
      .filter((target) => {
        if (!target.startsWith('.')) return !PACKAGES.includes(target)
        const to = resolve(source, dirname(file), target)
        return !to.startsWith(`${source}/`) && !(to.startsWith(`${root}/`) && importsOnlyTypes(code, target))
      })
      .map((target) => `${file} imports ${target}`)

  /** Whether every import of the target is an `import type`; its names may be on lines of their own. */
  const importsOnlyTypes = (code: string, target: string): boolean => {
    const imports = [...code.matchAll(/^import\b([^'";]*?)\bfrom\s+'([^']+)'/gm)].filter((found) => found[2] === target)
    return imports.length > 0 && imports.every((found) => found[1]?.startsWith(' type ') === true)
  }

  test('imports its packages and itself, and only types from the server', () => {
    const found = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file))
    expect(found.length).toBeGreaterThan(20)
    expect(found.flatMap((file) => offencesOf(file, readFileSync(join(source, file), 'utf8')))).toEqual([])
  })

  test('the check can fail', () => {
    expect(
      offencesOf(
        'pages/x.tsx',
        "import { SyncError } from '../../../src/contract/index.ts'\nimport lodash from 'lodash'\nimport type { Store } from '../../../src/contract/store.ts'\nimport { get } from '../api.ts'",
      ),
    ).toEqual(['pages/x.tsx imports ../../../src/contract/index.ts', 'pages/x.tsx imports lodash'])
  })
})

describe('ports', () => {
  test('the engine and its dependencies use no clock, randomness, network or environment directly', () => {
    const offences: string[] = []
    for (const file of files.filter((name) => PURE.includes(folderOf(name)!))) {
      const code = withoutComments(readFileSync(join(root, file), 'utf8'))
      for (const pattern of IMPURE) if (pattern.test(code)) offences.push(`${file}: ${pattern.source}`)
    }
    expect(offences).toEqual([])
  })

  test('the check can fail: each forbidden expression is recognised', () => {
    for (const word of [
      'Date.now()',
      'new Date()',
      'Math.random()',
      'setTimeout(f)',
      'process.env',
      'await fetch(url)',
      'randomUUID()',
    ]) {
      expect(
        IMPURE.some((pattern) => pattern.test(word)),
        word,
      ).toBe(true)
    }
    expect(IMPURE.some((pattern) => pattern.test('options.fetch(url)'))).toBe(false)
  })
})

function folderOf(file: string): string | undefined {
  const folder = dirname(file)
  return folders.find((name) => folder === name || folder.startsWith(`${name}/`))
}

function importsOf(file: string): string[] {
  return importsIn(readFileSync(join(root, file), 'utf8'))
}

function importsIn(code: string): string[] {
  return [
    ...withoutComments(code).matchAll(
      /(?:^(?:import|export)\b[^'"`;]*?\bfrom\s+|\bimport\(\s*|^import\s+)['"]([^'"]+)['"]/gm,
    ),
  ].map((match) => match[1]!)
}

function withoutComments(code: string): string {
  return code.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '')
}
