import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { expect, onTestFinished } from 'vitest'
import type { Project } from '../cli/project.ts'

/** The SDK's own client, talking to the command in a process of its own. */
export async function connect(project: Project, ...flags: string[]) {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [project.command, 'mcp', ...flags],
    cwd: project.folder,
    env: { PATH: process.env['PATH'] ?? '', NODE_OPTIONS: process.env['NODE_OPTIONS'] ?? '' },
    stderr: 'ignore',
  })
  const agent = new Client({ name: 'test', version: '1' })
  await agent.connect(transport)
  onTestFinished(() => agent.close())
  const raw = async (name: string, given: object = {}): Promise<{ isError: boolean; text: string }> => {
    const { isError = false, content } = await agent.callTool({ name, arguments: { ...given } })
    return { isError: isError === true, text: (content as { text: string }[])[0]!.text }
  }
  const call = async (name: string, given: object = {}): Promise<Record<string, unknown>> => {
    const { isError, text } = await raw(name, given)
    expect({ isError, text: isError ? text : '' }).toEqual({ isError: false, text: '' })
    return JSON.parse(text) as Record<string, unknown>
  }
  return { agent, call, raw }
}
