import { required } from '../values/required.ts'
import type { Readable, Writable } from 'node:stream'
import { Ajv } from 'ajv'
import { ERROR_CODES, isSyncError, SyncError, type JsonValue } from '../contract/index.ts'
import { maskSecrets } from '../redaction/known-secrets.ts'
import { stringifyJson } from '../values/json.ts'
import type { ToolContext } from './tool-context.ts'
import { queryTool } from './query-tool.ts'
import { readTools } from './read-tools.ts'
import type { McpTool } from './tool.ts'
import { writeTools } from './write-tools.ts'

export interface McpOptions {
  readonly context: ToolContext
  readonly version: string
  /** Offers the tools that change syncs. */
  readonly allowWrites: boolean
  readonly stdin: Readable
  readonly stdout: Writable
  readonly signal: AbortSignal
}

const TOOLS: readonly McpTool[] = [...readTools, queryTool, ...writeTools]

/** Serves an agent on standard input and output until it disconnects or the signal aborts. */
export async function serveMcp({ context, version, allowWrites, stdin, stdout, signal }: McpOptions): Promise<void> {
  const { Server, StdioServerTransport, ListToolsRequestSchema, CallToolRequestSchema, McpError, ErrorCode } =
    await loadSdk()
  const offered = TOOLS.filter(({ writes }) => allowWrites || !writes)
  const ajv = new Ajv({ useDefaults: true, strict: false, allowUnionTypes: true })
  const checks = new Map(offered.map((tool) => [tool.name, ajv.compile<Record<string, unknown>>(tool.inputSchema)]))
  const server = new Server(
    { name: 'tidemark', version },
    {
      capabilities: { tools: {} },
      instructions: `Databases that Tidemark maintains as exact copies of other systems, for tenant ${context.tenant}. Start with list_databases.${allowWrites ? '' : ' Read-only.'}`,
    },
  )
  server.setRequestHandler(ListToolsRequestSchema, async () => ({
    tools: offered.map(({ name, description, inputSchema: input, writes }) => ({
      name,
      description,
      inputSchema: input,
      annotations: { readOnlyHint: !writes, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    })),
  }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: given = {} } }) => {
    const tool = offered.find((one) => one.name === name)
    if (tool === undefined) {
      const known = TOOLS.some((one) => one.name === name)
      throw new McpError(
        ErrorCode.InvalidParams,
        known
          ? `${name} is disabled. Start \`tidemark mcp\` with --allow-writes to enable it.`
          : `Unknown tool ${JSON.stringify(name.slice(0, 63))}.`,
      )
    }
    const check = required(checks.get(name), `the argument schema of ${name}`)
    try {
      if (!check(given))
        throw new SyncError(
          'ARGUMENT_INVALID',
          `The arguments of ${name} are not valid: ${ajv.errorsText(check.errors, { dataVar: 'arguments' })}.`,
        )
      return {
        content: [{ type: 'text' as const, text: stringifyJson((await tool.run(context, given)) as JsonValue) }],
      }
    } catch (error) {
      // The agent can correct its call from this message. Internal errors are only logged.
      return { isError: true, content: [{ type: 'text' as const, text: describeError(error) }] }
    }
  })
  const left = new Promise<void>((resolve) => {
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the server is not an event target
    server.onclose = resolve
    stdin.once('end', resolve).once('close', resolve)
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await server.connect(new StdioServerTransport(stdin, stdout))
  await left
  await server.close()
}

function describeError(error: unknown): string {
  if (!isSyncError(error)) return `INTERNAL: ${ERROR_CODES.INTERNAL.advice}`
  return `${error.code}: ${maskSecrets(error.message)}${error.code === 'ARGUMENT_INVALID' ? '' : ` ${ERROR_CODES[error.code].advice}`}`
}

async function loadSdk() {
  try {
    const [
      { Server },
      { StdioServerTransport },
      { ListToolsRequestSchema, CallToolRequestSchema, McpError, ErrorCode },
    ] = await Promise.all([
      import('@modelcontextprotocol/sdk/server/index.js'),
      import('@modelcontextprotocol/sdk/server/stdio.js'),
      import('@modelcontextprotocol/sdk/types.js'),
    ])
    return { Server, StdioServerTransport, ListToolsRequestSchema, CallToolRequestSchema, McpError, ErrorCode }
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new SyncError(
      'PACKAGE_UNFIT',
      '`tidemark mcp` needs @modelcontextprotocol/sdk, which is not installed. Run `npm install @modelcontextprotocol/sdk`.',
      { cause },
    )
  }
}
