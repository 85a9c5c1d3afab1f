import type { Connection } from '../kit/graphql/relay.ts'
import type { Args, Field, Parent, Schema } from '../kit/graphql/schema.ts'

export interface LinearContext {
  viewer(): Parent
  one(type: 'issue' | 'team', id: string): Parent
  issues(args: Args, teamId?: string): Connection<Parent>
  teams(args: Args): Connection<Parent>
}

const PAGING = { first: 'Int', after: 'String', last: 'Int', before: 'String', includeArchived: 'Boolean', orderBy: 'PaginationOrderBy' } as const
const STAMPS = { id: { type: 'ID!' }, createdAt: { type: 'DateTime!' }, updatedAt: { type: 'DateTime!' }, archivedAt: { type: 'DateTime' } } satisfies Record<string, Field<LinearContext>>

/** The part of Linear's schema that is played: issues and their teams. */
export const LINEAR_SCHEMA: Schema<LinearContext> = {
  Query: {
    kind: 'object',
    fields: {
      viewer: { type: 'User!', resolve: (_parent, _args, context) => context.viewer() },
      issue: { type: 'Issue!', args: { id: 'String!' }, resolve: (_parent, { id }, context) => context.one('issue', String(id)) },
      team: { type: 'Team!', args: { id: 'String!' }, resolve: (_parent, { id }, context) => context.one('team', String(id)) },
      issues: { type: 'IssueConnection!', args: { ...PAGING, filter: 'IssueFilter' }, resolve: (_parent, args, context) => context.issues(args) },
      teams: { type: 'TeamConnection!', args: { ...PAGING, filter: 'TeamFilter' }, resolve: (_parent, args, context) => context.teams(args) },
    },
  },
  User: { kind: 'object', fields: { ...STAMPS, name: { type: 'String!' }, email: { type: 'String!' } } },
  Team: {
    kind: 'object',
    fields: {
      ...STAMPS,
      name: { type: 'String!' },
      key: { type: 'String!' },
      issues: { type: 'IssueConnection!', args: { ...PAGING, filter: 'IssueFilter' }, resolve: (parent, args, context) => context.issues(args, String(parent['id'])) },
    },
  },
  Issue: {
    kind: 'object',
    fields: {
      ...STAMPS,
      identifier: { type: 'String!' },
      number: { type: 'Float!' },
      title: { type: 'String!' },
      description: { type: 'String' },
      priority: { type: 'Float!' },
      url: { type: 'String!' },
      team: { type: 'Team!', resolve: (parent, _args, context) => context.one('team', String(parent['teamId'])) },
    },
  },
  IssueConnection: { kind: 'object', fields: { nodes: { type: '[Issue!]!' }, edges: { type: '[IssueEdge!]!' }, pageInfo: { type: 'PageInfo!' } } },
  IssueEdge: { kind: 'object', fields: { cursor: { type: 'String!' }, node: { type: 'Issue!' } } },
  TeamConnection: { kind: 'object', fields: { nodes: { type: '[Team!]!' }, edges: { type: '[TeamEdge!]!' }, pageInfo: { type: 'PageInfo!' } } },
  TeamEdge: { kind: 'object', fields: { cursor: { type: 'String!' }, node: { type: 'Team!' } } },
  PageInfo: { kind: 'object', fields: { hasNextPage: { type: 'Boolean!' }, hasPreviousPage: { type: 'Boolean!' }, startCursor: { type: 'String' }, endCursor: { type: 'String' } } },
}
