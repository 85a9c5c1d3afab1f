import type { Connection } from '../kit/graphql/relay.ts'
import { createConnectionTypes, PAGE_INFO } from '../kit/graphql/relay-types.ts'
import type { Args, Field, Parent, Schema } from '../kit/graphql/schema.ts'
import { LINEAR_ENTITIES } from './entities.ts'

export interface LinearContext {
  viewer(): Parent
  one(type: 'issue' | 'team', id: string): Parent
  issues(args: Args, teamId?: string): Connection<Parent>
  teams(args: Args): Connection<Parent>
  /** Entities of any other type. */
  entities(type: string, args: Args): Connection<Parent>
}

const PAGING = {
  first: 'Int',
  after: 'String',
  last: 'Int',
  before: 'String',
  includeArchived: 'Boolean',
  orderBy: 'PaginationOrderBy',
} as const
const TIMESTAMP_FIELDS = {
  id: { type: 'ID!' },
  createdAt: { type: 'DateTime!' },
  updatedAt: { type: 'DateTime!' },
  archivedAt: { type: 'DateTime' },
} satisfies Record<string, Field<LinearContext>>

/** Relations of an issue that are always empty here; clients request their ids all the same. */
const RELATION_TYPES: Readonly<Record<string, string>> = {
  asksExternalUserRequester: 'ExternalUser',
  asksRequester: 'User',
  assignee: 'User',
  creator: 'User',
  cycle: 'Cycle',
  delegate: 'User',
  externalUserCreator: 'ExternalUser',
  favorite: 'Favorite',
  lastAppliedTemplate: 'Template',
  parent: 'Issue',
  project: 'Project',
  projectMilestone: 'ProjectMilestone',
  recurringIssueTemplate: 'Template',
  snoozedBy: 'User',
  sourceComment: 'Comment',
}
const USER_TEXT_FIELDS = [
  'active',
  'admin',
  'app',
  'avatarBackgroundColor',
  'avatarUrl',
  'calendarHash',
  'canAccessAnyPublicTeam',
  'createdIssueCount',
  'description',
  'disableReason',
  'displayName',
  'gitHubUserId',
  'guest',
  'initials',
  'inviteHash',
  'isAssignable',
  'isMe',
  'isMentionable',
  'lastSeen',
  'owner',
  'statusEmoji',
  'statusLabel',
  'statusUntilAt',
  'supportsAgentSessions',
  'timezone',
  'title',
  'url',
]
const EMPTY_TEXTS = ['dueDate', 'integrationSourceType', 'slaType']
const EMPTY_TIMES = [
  'addedToCycleAt',
  'addedToProjectAt',
  'addedToTeamAt',
  'autoArchivedAt',
  'autoClosedAt',
  'canceledAt',
  'completedAt',
  'slaBreachesAt',
  'slaHighRiskAt',
  'slaMediumRiskAt',
  'slaStartedAt',
  'snoozedUntilAt',
  'startedAt',
  'startedTriageAt',
  'triagedAt',
]
const fieldsOfType = (names: readonly string[], type: string): Record<string, Field<LinearContext>> =>
  Object.fromEntries(names.map((name) => [name, { type }]))
const constantField = (type: string, value: unknown): Field<LinearContext> => ({ type, resolve: () => value })

/** The simulated part of Linear's schema: issues and their teams. */
export const LINEAR_SCHEMA: Schema<LinearContext> = {
  Query: {
    kind: 'object',
    fields: {
      viewer: { type: 'User!', resolve: (_parent, _args, context) => context.viewer() },
      issue: {
        type: 'Issue!',
        args: { id: 'String!' },
        resolve: (_parent, { id }, context) => context.one('issue', String(id)),
      },
      team: {
        type: 'Team!',
        args: { id: 'String!' },
        resolve: (_parent, { id }, context) => context.one('team', String(id)),
      },
      issues: {
        type: 'IssueConnection!',
        args: { ...PAGING, filter: 'IssueFilter', sort: '[IssueSortInput!]' },
        resolve: (_parent, args, context) => context.issues(args),
      },
      teams: {
        type: 'TeamConnection!',
        args: { ...PAGING, filter: 'TeamFilter' },
        resolve: (_parent, args, context) => context.teams(args),
      },
      ...Object.fromEntries(
        Object.entries(LINEAR_ENTITIES).map(([type, { typeName, list, filter, args }]) => [
          list,
          {
            type: `${typeName}Connection!`,
            args: { ...PAGING, filter, ...args },
            resolve: (_parent: Parent, given: Args, context: LinearContext) => context.entities(type, given),
          },
        ]),
      ),
    },
  },
  User: {
    kind: 'object',
    fields: {
      ...fieldsOfType(USER_TEXT_FIELDS, 'String'),
      ...TIMESTAMP_FIELDS,
      name: { type: 'String!' },
      email: { type: 'String!' },
    },
  },
  Team: {
    kind: 'object',
    fields: {
      ...TIMESTAMP_FIELDS,
      name: { type: 'String!' },
      key: { type: 'String!' },
      issues: {
        type: 'IssueConnection!',
        args: { ...PAGING, filter: 'IssueFilter' },
        resolve: (parent, args, context) => context.issues(args, String(parent['id'])),
      },
    },
  },
  Issue: {
    kind: 'object',
    fields: {
      ...TIMESTAMP_FIELDS,
      identifier: { type: 'String!' },
      number: { type: 'Float!' },
      title: { type: 'String!' },
      description: { type: 'String' },
      priority: { type: 'Float!' },
      url: { type: 'String!' },
      team: { type: 'Team!', resolve: (parent, _args, context) => context.one('team', String(parent['teamId'])) },
      ...Object.fromEntries(Object.entries(RELATION_TYPES).map(([name, type]) => [name, { type }])),
      ...fieldsOfType(EMPTY_TEXTS, 'String'),
      ...fieldsOfType(EMPTY_TIMES, 'DateTime'),
      ...fieldsOfType(['estimate', 'subIssueSortOrder'], 'Float'),
      botActor: { type: 'ActorBot' },
      branchName: { type: 'String!', resolve: ({ identifier }) => String(identifier).toLowerCase() },
      boardOrder: constantField('Float!', 0),
      customerTicketCount: constantField('Int!', 0),
      inheritsSharedAccess: constantField('Boolean!', false),
      labelIds: { type: '[String!]!' },
      previousIdentifiers: constantField('[String!]!', []),
      priorityLabel: {
        type: 'String!',
        resolve: ({ priority }) =>
          ['No priority', 'Urgent', 'High', 'Medium', 'Low'][Number(priority)] ?? 'No priority',
      },
      prioritySortOrder: constantField('Float!', 0),
      reactionData: constantField('JSONObject!', []),
      reactions: constantField('[Reaction!]!', []),
      sharedAccess: constantField('IssueSharedAccess!', {
        isShared: false,
        viewerHasOnlySharedAccess: false,
        sharedWithCount: 0,
        sharedWithUsers: [],
        disallowedIssueFields: [],
      }),
      sortOrder: constantField('Float!', 0),
      state: { type: 'WorkflowState!' },
      syncedWith: { type: '[ExternalEntityInfo!]' },
      trashed: { type: 'Boolean' },
    },
  },
  ...Object.fromEntries(
    Object.values(LINEAR_ENTITIES)
      .filter(({ typeName }) => typeName !== 'User')
      .map(({ typeName, fields }) => [
        typeName,
        {
          kind: 'object',
          fields: {
            ...TIMESTAMP_FIELDS,
            ...Object.fromEntries(Object.entries(fields).map(([name, [type]]) => [name, { type }])),
          },
        } as const,
      ]),
  ),
  ...Object.assign(
    {},
    ...Object.values(LINEAR_ENTITIES).map(({ typeName }) => createConnectionTypes(typeName, { isNonNull: true })),
  ),
  ...Object.fromEntries(
    ['ExternalUser', 'Favorite', 'InitiativeUpdate', 'ProjectUpdate', 'Template'].map((name) => [
      name,
      { kind: 'object', fields: { id: { type: 'ID!' } } } as const,
    ]),
  ),
  ActorBot: {
    kind: 'object',
    fields: fieldsOfType(['avatarUrl', 'id', 'name', 'subType', 'type', 'userDisplayName'], 'String'),
  },
  Reaction: {
    kind: 'object',
    fields: {
      ...TIMESTAMP_FIELDS,
      emoji: { type: 'String!' },
      comment: { type: 'Comment' },
      externalUser: { type: 'ExternalUser' },
      initiativeUpdate: { type: 'InitiativeUpdate' },
      issue: { type: 'Issue' },
      projectUpdate: { type: 'ProjectUpdate' },
      user: { type: 'User' },
    },
  },
  IssueSharedAccess: {
    kind: 'object',
    fields: {
      ...fieldsOfType(['viewerHasOnlySharedAccess', 'isShared'], 'Boolean!'),
      sharedWithCount: { type: 'Int!' },
      disallowedIssueFields: { type: '[String!]!' },
      sharedWithUsers: { type: '[User!]!' },
    },
  },
  ExternalEntityInfo: {
    kind: 'object',
    fields: { ...fieldsOfType(['id', 'service'], 'String'), metadata: { type: 'ExternalEntityInfoGithubMetadata' } },
  },
  ExternalEntityInfoGithubMetadata: { kind: 'object', fields: fieldsOfType(['number', 'owner', 'repo'], 'String') },
  ExternalEntityInfoJiraMetadata: {
    kind: 'object',
    fields: fieldsOfType(['issueTypeId', 'projectId', 'issueKey'], 'String'),
  },
  ExternalEntitySlackMetadata: {
    kind: 'object',
    fields: fieldsOfType(['messageUrl', 'channelId', 'channelName', 'isFromSlack'], 'String'),
  },
  ...createConnectionTypes('Issue', { isNonNull: true }),
  ...createConnectionTypes('Team', { isNonNull: true }),
  PageInfo: PAGE_INFO,
}
