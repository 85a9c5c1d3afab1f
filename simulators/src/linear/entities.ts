/** A field of an entity: its type in the schema, and the value of a record that was created without it. */
type EntityField = readonly [type: string, value: unknown]

export interface LinearEntity {
  /** The type in the schema. */
  readonly typeName: string
  /** The field of the query that lists it. */
  readonly list: string
  readonly filter: string
  /** Arguments of the list in addition to those that every list has. */
  readonly args?: Readonly<Record<string, string>>
  /** Related entities are given by their id, and only that can be selected. */
  readonly fields: Readonly<Record<string, EntityField>>
}

const DOCUMENTED_LOOKS = { slugId: ['String!', 'simulated'], color: ['String', null], icon: ['String', null] } as const

/** Every entity but issues and teams, by the type of its records. */
export const LINEAR_ENTITIES: Readonly<Record<string, LinearEntity>> = {
  project: {
    typeName: 'Project',
    list: 'projects',
    filter: 'ProjectFilter',
    fields: {
      ...DOCUMENTED_LOOKS,
      name: ['String!', ''],
      description: ['String!', ''],
      url: ['String!', 'https://linear.app/simulated/project'],
      state: ['String!', 'backlog'],
      priority: ['Int!', 0],
      health: ['ProjectUpdateHealthType', null],
      startDate: ['TimelessDate', null],
      targetDate: ['TimelessDate', null],
      startedAt: ['DateTime', null],
      completedAt: ['DateTime', null],
      canceledAt: ['DateTime', null],
      lead: ['User', null],
      creator: ['User', null],
    },
  },
  cycle: {
    typeName: 'Cycle',
    list: 'cycles',
    filter: 'CycleFilter',
    fields: {
      number: ['Float!', 1],
      name: ['String', null],
      description: ['String', null],
      startsAt: ['DateTime!', '2026-01-05T00:00:00.000Z'],
      endsAt: ['DateTime!', '2026-01-19T00:00:00.000Z'],
      completedAt: ['DateTime', null],
      team: ['Team!', { id: '00000000-0000-0000-0000-0000000000bb' }],
    },
  },
  comment: {
    typeName: 'Comment',
    list: 'comments',
    filter: 'CommentFilter',
    fields: {
      body: ['String!', ''],
      url: ['String!', 'https://linear.app/simulated/comment'],
      editedAt: ['DateTime', null],
      resolvedAt: ['DateTime', null],
      issueId: ['String', null],
      projectId: ['String', null],
      parentId: ['String', null],
      user: ['User', null],
    },
  },
  user: {
    typeName: 'User',
    list: 'users',
    filter: 'UserFilter',
    args: { includeDisabled: 'Boolean' },
    fields: {
      name: ['String!', ''],
      displayName: ['String!', ''],
      email: ['String!', 'user@example.com'],
      active: ['Boolean!', true],
      admin: ['Boolean!', false],
      guest: ['Boolean!', false],
      url: ['String!', 'https://linear.app/simulated/user'],
      avatarUrl: ['String', null],
    },
  },
  issueLabel: {
    typeName: 'IssueLabel',
    list: 'issueLabels',
    filter: 'IssueLabelFilter',
    fields: {
      name: ['String!', ''],
      description: ['String', null],
      color: ['String!', '#000000'],
      isGroup: ['Boolean!', false],
      team: ['Team', null],
      parent: ['IssueLabel', null],
      creator: ['User', null],
    },
  },
  workflowState: {
    typeName: 'WorkflowState',
    list: 'workflowStates',
    filter: 'WorkflowStateFilter',
    fields: {
      name: ['String!', ''],
      description: ['String', null],
      color: ['String!', '#000000'],
      type: ['String!', 'unstarted'],
      position: ['Float!', 0],
      team: ['Team!', { id: '00000000-0000-0000-0000-0000000000bb' }],
    },
  },
  attachment: {
    typeName: 'Attachment',
    list: 'attachments',
    filter: 'AttachmentFilter',
    fields: {
      title: ['String!', ''],
      subtitle: ['String', null],
      url: ['String!', 'https://files.example/a'],
      sourceType: ['String', null],
      metadata: ['JSONObject!', {}],
      issue: ['Issue!', { id: '00000000-0000-0000-0000-0000000000cc' }],
      creator: ['User', null],
    },
  },
  document: {
    typeName: 'Document',
    list: 'documents',
    filter: 'DocumentFilter',
    fields: {
      ...DOCUMENTED_LOOKS,
      title: ['String!', ''],
      content: ['String', null],
      url: ['String!', 'https://linear.app/simulated/document'],
      project: ['Project', null],
      issue: ['Issue', null],
      creator: ['User', null],
      updatedBy: ['User', null],
    },
  },
  initiative: {
    typeName: 'Initiative',
    list: 'initiatives',
    filter: 'InitiativeFilter',
    fields: {
      ...DOCUMENTED_LOOKS,
      name: ['String!', ''],
      description: ['String', null],
      url: ['String!', 'https://linear.app/simulated/initiative'],
      status: ['InitiativeStatus!', 'Planned'],
      health: ['InitiativeUpdateHealthType', null],
      targetDate: ['TimelessDate', null],
      startedAt: ['DateTime', null],
      completedAt: ['DateTime', null],
      owner: ['User', null],
      creator: ['User', null],
    },
  },
  projectMilestone: {
    typeName: 'ProjectMilestone',
    list: 'projectMilestones',
    filter: 'ProjectMilestoneFilter',
    fields: {
      name: ['String!', ''],
      description: ['String', null],
      sortOrder: ['Float!', 0],
      targetDate: ['TimelessDate', null],
      status: ['ProjectMilestoneStatus!', 'unstarted'],
      project: ['Project!', { id: '00000000-0000-0000-0000-0000000000dd' }],
    },
  },
}

/** Fields of an issue that are empty unless its record has them. */
export const ISSUE_DEFAULTS = {
  estimate: null,
  dueDate: null,
  startedAt: null,
  completedAt: null,
  canceledAt: null,
  labelIds: [],
  state: { id: '00000000-0000-0000-0000-0000000000aa' },
  assignee: null,
  creator: null,
  project: null,
  projectMilestone: null,
  cycle: null,
  parent: null,
} as const
