/** The entity types of a workspace: the name of the list in the query, and the fields that are read. */
export const ENTITY_FIELDS = {
  attachments: 'title subtitle url sourceType metadata issue { id } creator { id }',
  comments: 'body url editedAt resolvedAt issueId projectId parentId user { id }',
  cycles: 'number name description startsAt endsAt completedAt team { id }',
  documents: 'title content slugId url color icon project { id } issue { id } creator { id } updatedBy { id }',
  initiatives:
    'name description slugId url color icon status health targetDate startedAt completedAt owner { id } creator { id }',
  issueLabels: 'name description color isGroup team { id } parent { id } creator { id }',
  issues:
    'identifier number title description priority url estimate dueDate startedAt completedAt canceledAt labelIds team { id } state { id } assignee { id } creator { id } project { id } projectMilestone { id } cycle { id } parent { id }',
  projectMilestones: 'name description sortOrder targetDate status project { id }',
  projects:
    'name description slugId url color icon state priority health startDate targetDate startedAt completedAt canceledAt lead { id } creator { id }',
  teams: 'key name',
  users: 'name displayName email active admin guest url avatarUrl',
  workflowStates: 'name description color type position team { id }',
} as const

/** Lists that leave records out unless they are asked for. */
export const LIST_ARGUMENTS: Readonly<Partial<Record<EntityName, string>>> = { users: 'includeDisabled: true' }

export type EntityName = keyof typeof ENTITY_FIELDS
