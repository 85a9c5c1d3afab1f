import { FieldError, type Args, type Field, type Parent, type Schema } from '../kit/graphql/schema.ts'
import type { Connection } from '../kit/graphql/relay.ts'
import { createConnectionTypes, PAGE_INFO } from '../kit/graphql/relay-types.ts'

/** The operations of the simulator that the schema's fields need. */
export interface GithubContext {
  viewer(): Parent
  owner(login: string, typename?: 'User' | 'Organization'): Parent | undefined
  repository(owner: string, name: string): Parent | undefined
  node(id: string): Parent | undefined
  repositories(owner: string, args: Args): Connection<Parent>
  issues(repositoryId: string, args: Args): Connection<Parent>
  rateLimit(): Parent
}

export const NODE_IDS_MAX = 100

const CONNECTION = { isNonNull: false, fields: { totalCount: { type: 'Int!' } } }
const PAGING = { after: 'String', before: 'String', first: 'Int', last: 'Int' } as const
const REPOSITORIES: Field<GithubContext> = {
  type: 'RepositoryConnection!',
  args: {
    ...PAGING,
    isArchived: 'Boolean',
    isFork: 'Boolean',
    orderBy: 'RepositoryOrder',
    privacy: 'RepositoryPrivacy',
    affiliations: '[RepositoryAffiliation]',
    ownerAffiliations: '[RepositoryAffiliation]',
  },
  resolve: (parent, args, context) => context.repositories(String(parent['login']), args),
}
const OWNER = { id: { type: 'ID!' }, login: { type: 'String!' }, repositories: REPOSITORIES } satisfies Record<
  string,
  Field<GithubContext>
>

/** The simulated part of GitHub's schema, in GitHub's spelling. */
export const GITHUB_SCHEMA: Schema<GithubContext> = {
  Query: {
    kind: 'object',
    fields: {
      viewer: { type: 'User!', resolve: (_parent, _args, context) => context.viewer() },
      user: {
        type: 'User',
        args: { login: 'String!' },
        resolve: (_parent, { login }, context) =>
          requireFound(context.owner(String(login), 'User'), 'a User', 'login', String(login)),
      },
      organization: {
        type: 'Organization',
        args: { login: 'String!' },
        resolve: (_parent, { login }, context) =>
          requireFound(context.owner(String(login), 'Organization'), 'an Organization', 'login', String(login)),
      },
      repositoryOwner: {
        type: 'RepositoryOwner',
        args: { login: 'String!' },
        resolve: (_parent, { login }, context) => context.owner(String(login)),
      },
      repository: {
        type: 'Repository',
        args: { owner: 'String!', name: 'String!', followRenames: 'Boolean' },
        resolve: (_parent, { owner, name }, context) =>
          requireFound(
            context.repository(String(owner), String(name)),
            'a Repository',
            'name',
            `${String(owner)}/${String(name)}`,
          ),
      },
      node: { type: 'Node', args: { id: 'ID!' }, resolve: (_parent, { id }, context) => findNode(String(id), context) },
      nodes: {
        type: '[Node]!',
        args: { ids: '[ID!]!' },
        resolve: (_parent, { ids }, context) => findNodes((Array.isArray(ids) ? ids : [ids]).map(String), context),
      },
      rateLimit: {
        type: 'RateLimit',
        args: { dryRun: 'Boolean' },
        resolve: (_parent, _args, context) => context.rateLimit(),
      },
    },
  },
  Node: { kind: 'interface', fields: { id: { type: 'ID!' } } },
  RepositoryOwner: { kind: 'interface', fields: OWNER },
  User: { kind: 'object', implements: ['Node', 'RepositoryOwner'], fields: { ...OWNER, name: { type: 'String' } } },
  Organization: {
    kind: 'object',
    implements: ['Node', 'RepositoryOwner'],
    fields: { ...OWNER, name: { type: 'String' } },
  },
  Repository: {
    kind: 'object',
    implements: ['Node'],
    fields: {
      id: { type: 'ID!' },
      databaseId: { type: 'Int' },
      name: { type: 'String!' },
      nameWithOwner: { type: 'String!' },
      description: { type: 'String' },
      createdAt: { type: 'DateTime!' },
      updatedAt: { type: 'DateTime!' },
      url: { type: 'URI!' },
      isArchived: { type: 'Boolean!' },
      owner: {
        type: 'RepositoryOwner!',
        resolve: (parent, _args, context) => context.owner(String(parent['ownerLogin'])),
      },
      issues: {
        type: 'IssueConnection!',
        args: {
          ...PAGING,
          filterBy: 'IssueFilters',
          labels: '[String!]',
          orderBy: 'IssueOrder',
          states: '[IssueState!]',
        },
        resolve: (parent, args, context) => context.issues(String(parent['id']), args),
      },
    },
  },
  Issue: {
    kind: 'object',
    implements: ['Node'],
    fields: {
      id: { type: 'ID!' },
      databaseId: { type: 'Int' },
      number: { type: 'Int!' },
      title: { type: 'String!' },
      body: { type: 'String!' },
      state: { type: 'IssueState!' },
      createdAt: { type: 'DateTime!' },
      updatedAt: { type: 'DateTime!' },
      closedAt: { type: 'DateTime' },
      url: { type: 'URI!' },
      repository: {
        type: 'Repository!',
        resolve: (parent, _args, context) => context.node(String(parent['repositoryId'])),
      },
    },
  },
  ...createConnectionTypes('Repository', CONNECTION),
  ...createConnectionTypes('Issue', CONNECTION),
  PageInfo: PAGE_INFO,
  RateLimit: {
    kind: 'object',
    fields: {
      limit: { type: 'Int!' },
      cost: { type: 'Int!' },
      remaining: { type: 'Int!' },
      resetAt: { type: 'DateTime!' },
      used: { type: 'Int!' },
      nodeCount: { type: 'Int!' },
    },
  },
}

function requireFound(parent: Parent | undefined, what: string, by: string, value: string): Parent {
  if (parent === undefined)
    throw new FieldError(`Could not resolve to ${what} with the ${by} of '${value}'.`, 'NOT_FOUND')
  return parent
}

function findNode(id: string, context: GithubContext): Parent {
  const node = context.node(id)
  if (node === undefined) throw new FieldError(`Could not resolve to a node with the global id of '${id}'`, 'NOT_FOUND')
  return node
}

/** Each unknown id yields a separate null with its own error. */
function findNodes(ids: readonly string[], context: GithubContext): unknown[] {
  if (ids.length > NODE_IDS_MAX)
    throw new FieldError(
      `You may not provide more than ${NODE_IDS_MAX} node ids; you provided ${ids.length}.`,
      'ARGUMENT_LIMIT',
    )
  return ids.map(
    (id) =>
      context.node(id) ?? new FieldError(`Could not resolve to a node with the global id of '${id}'`, 'NOT_FOUND'),
  )
}
