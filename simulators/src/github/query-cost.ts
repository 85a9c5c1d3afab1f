import type { Execution, GraphqlError } from '../kit/graphql/execute.ts'
import { GITHUB_SCHEMA, type GithubContext } from './schema.ts'

const NODES_MAX = 500_000
const PAGE_SIZE_MAX = 100

export interface QueryCost {
  readonly nodeCount: number
  /** Points against the hourly budget: the requests a server would make to fill every connection, in hundreds. */
  readonly cost: number
  readonly errors: readonly GraphqlError[]
}

/** Counted from the query alone: every connection requests its `first`, once per node its parents may have. */
export function computeQueryCost(execution: Execution<GithubContext>): QueryCost {
  const errors: GraphqlError[] = []
  let nodeCount = 0
  let requests = 0
  execution.walk((parentType, node, path, parents) => {
    const type = GITHUB_SCHEMA[parentType]?.fields[node.name]?.type ?? ''
    if (!type.endsWith('Connection!')) return
    const args = execution.argumentsOf(node)
    const bound = typeof args['first'] === 'number' ? 'first' : 'last'
    const size = args[bound]
    const at = { path: [...path], locations: [node.location] }
    if (typeof size !== 'number') {
      errors.push({
        ...at,
        type: 'MISSING_PAGINATION_BOUNDARIES',
        message: `You must provide a \`first\` or \`last\` value to properly paginate the \`${node.name}\` connection.`,
      })
      return
    }
    if (size > PAGE_SIZE_MAX)
      errors.push({
        ...at,
        type: 'EXCESSIVE_PAGINATION',
        message: `Requesting ${size} records on the \`${node.name}\` connection exceeds the \`${bound}\` limit of ${PAGE_SIZE_MAX} records.`,
      })
    if (size < 0)
      errors.push({
        ...at,
        type: 'INVALID_PAGINATION',
        message: `\`${bound}\` on the \`${node.name}\` connection cannot be less than zero.`,
      })
    let times = 1
    for (const parent of parents) {
      const given = execution.argumentsOf(parent)
      if (typeof given['first'] === 'number') times *= given['first']
      else if (typeof given['last'] === 'number') times *= given['last']
      else if (Array.isArray(given['ids'])) times *= given['ids'].length
    }
    requests += times
    nodeCount += times * size
  })
  if (nodeCount > NODES_MAX)
    errors.push({
      type: 'MAX_NODE_LIMIT_EXCEEDED',
      message: `This query requests up to ${nodeCount.toLocaleString('en-US')} possible nodes which exceeds the maximum limit of ${NODES_MAX.toLocaleString('en-US')}.`,
    })
  return { nodeCount, cost: Math.max(1, Math.round(requests / 100)), errors }
}
