import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { createProgram, listCommands } from '../../src/cli/program.ts'
import { Terminal } from '../../src/cli/kit/terminal.ts'
import { ROOT } from '../cli/package.ts'
import { settingsOf } from '../runner/restate/cluster.ts'
import { blocksOf } from './blocks.ts'

const PAGE = 'docs/guides/restate.md'
const blocks = blocksOf(PAGE)
const manifests = blocks
  .filter(({ language }) => language === 'yaml')
  .flatMap(({ text }) =>
    parseAllDocuments(text).map((document) => {
      expect(document.errors).toEqual([])
      return document.toJS() as Record<string, any>
    }),
  )
const named = (kind: string, name: string): Record<string, any> =>
  manifests.find((manifest) => manifest['kind'] === kind && manifest['metadata'].name === name)!

describe(`the manifests of ${PAGE}`, () => {
  test('are complete, each of them once', () => {
    const names = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    expect(names).toEqual([
      'Service restate-nodes',
      'Service restate',
      'PodDisruptionBudget restate',
      'StatefulSet restate',
      'Service tidemark',
      'Deployment tidemark',
      'NetworkPolicy tidemark-worker',
      'Job tidemark-register',
    ])
  })

  test('every selector matches pods, and every port of a service is one that its pods listen on', () => {
    const pods = ['StatefulSet restate', 'Deployment tidemark'].map(
      (text) => named(...(text.split(' ') as [string, string]))['spec'],
    )
    for (const { selector, template } of pods) expect(template.metadata.labels).toEqual(selector.matchLabels)
    for (const { metadata, spec } of manifests.filter(({ kind }) => kind === 'Service')) {
      const pod = pods.find(({ template }) => template.metadata.labels.app === spec.selector.app)
      const listening = pod.template.spec.containers[0].ports.map(
        ({ containerPort }: { containerPort: number }) => containerPort,
      )
      for (const { port } of spec.ports) expect(listening, metadata.name).toContain(port)
    }
    for (const selector of [
      named('PodDisruptionBudget', 'restate')['spec'].selector,
      named('NetworkPolicy', 'tidemark-worker')['spec'].podSelector,
    ]) {
      expect(pods.map(({ template }) => template.metadata.labels)).toContainEqual(selector.matchLabels)
    }
  })

  test('the cluster has the settings of the chaos runs, its nodes know each other by name, and its release is the tested one', () => {
    const { serviceName, replicas, template } = named('StatefulSet', 'restate')['spec']
    const [{ image, env }] = template.spec.containers
    const settings = Object.fromEntries(env.map(({ name, value }: { name: string; value?: string }) => [name, value]))
    const tested = settingsOf(0, [{ ingress: 1, admin: 2, node: 5122 }])
    for (const name of ['RESTATE_CLUSTER_NAME', 'RESTATE_DEFAULT_REPLICATION'])
      expect(settings[name]).toBe(tested[name as keyof typeof tested])
    expect(JSON.parse(settings.RESTATE_METADATA_CLIENT__ADDRESSES)).toEqual(
      Array.from({ length: replicas }, (_, index) => `http://restate-${index}.${serviceName}:5122`),
    )
    expect(settings.RESTATE_ADVERTISED_ADDRESS).toBe(`http://$(RESTATE_NODE_NAME).${serviceName}:5122`)
    const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      devDependencies: Record<string, string>
    }
    expect(image).toBe(`docker.restate.dev/restatedev/restate:${devDependencies['@restatedev/restate-server']}`)
  })

  test('the worker is called by Restate alone, at the registered address; every flag exists', async () => {
    const [{ command, ports }] = named('Deployment', 'tidemark')['spec'].template.spec.containers
    const [{ command: registering }] = named('Job', 'tidemark-register')['spec'].template.spec.containers
    expect(registering).toContain(`http://tidemark:${ports[0].containerPort}`)
    expect(command[command.indexOf('--restate-port') + 1]).toBe(String(ports[0].containerPort))
    expect(named('NetworkPolicy', 'tidemark-worker')['spec'].ingress[0]).toEqual({
      from: [{ podSelector: { matchLabels: { app: 'restate' } } }],
      ports: [{ port: ports[0].containerPort }],
    })
    for (const words of [command, registering]) await expectKnown(words.slice(2))
  })
})

test('the three nodes of the page are started with the settings of the chaos runs', async () => {
  const page = blocks.find(({ text }) => text.includes('RESTATE_DEFAULT_REPLICATION=2'))!.text
  const ports = [1, 2, 3].map((node) => ({
    ingress: Number(`${node}8080`),
    admin: Number(`${node}9070`),
    node: Number(`${node}5122`),
  }))
  for (const [name, value] of Object.entries(settingsOf(0, ports))) {
    if (name === 'RESTATE_NODE_NAME' || name === 'RESTATE_AUTO_PROVISION') continue
    expect(page).toMatch(new RegExp(`${name}='?${value.replaceAll(/[[\]]/g, '\\$&')}'?(\\s|$)`))
  }
  expect(page).toContain('node 1 true & node 2 false & node 3 false &')
  for (const line of blocks.flatMap(({ text }) => text.split('\n')).filter((text) => text.startsWith('npx tidemark ')))
    await expectKnown(line.split(' ').slice(2))
})

/** A CLI command with existing flags. */
async function expectKnown(words: readonly string[]): Promise<void> {
  const silent = { write: () => true, on: () => {} }
  const program = await createProgram(
    {
      terminal: new Terminal({ stdout: silent, stderr: silent, environment: {}, json: false }),
      stdout: new PassThrough(),
      targetFlags: [],
      environment: {},
      folder: ROOT,
      listenForStop: () => new AbortController().signal,
    },
    () => {},
  )
  const verb = words.slice(0, words[0] === 'restate' ? 2 : 1)
  const command = listCommands(program).find(
    (one) => one.name() === verb.at(-1) && (verb.length === 1 || one.parent?.name() === verb[0]),
  )
  expect(command, verb.join(' ')).toBeDefined()
  const flags = command!.options.map(({ long }) => long)
  for (const flag of words.filter((word) => word.startsWith('--'))) expect(flags, verb.join(' ')).toContain(flag)
}
