/**
 * The standard types of the CRM and the properties that are read of each by default. Lists and searches return other
 * default properties, so all properties are requested by name.
 */
export const STANDARD_PROPERTIES: Readonly<Record<string, readonly string[]>> = {
  contacts: ['email', 'firstname', 'lastname'],
  companies: ['name', 'domain'],
  deals: ['dealname', 'amount', 'closedate', 'dealstage', 'pipeline'],
  tickets: ['subject', 'content', 'hs_pipeline', 'hs_pipeline_stage', 'hs_ticket_priority'],
  products: ['name', 'description', 'price', 'hs_sku'],
  line_items: ['name', 'quantity', 'price', 'amount', 'hs_product_id'],
  quotes: ['hs_title', 'hs_status', 'hs_expiration_date', 'hs_quote_amount'],
  leads: ['hs_lead_name', 'hs_lead_type', 'hs_lead_label', 'hs_pipeline', 'hs_pipeline_stage'],
  orders: ['hs_order_name', 'hs_currency_code', 'hs_total_price', 'hs_pipeline', 'hs_pipeline_stage'],
  carts: ['hs_cart_name', 'hs_external_status', 'hs_total_price'],
  invoices: ['hs_number', 'hs_invoice_status', 'hs_amount_billed', 'hs_currency', 'hs_due_date'],
  calls: ['hs_timestamp', 'hs_call_title', 'hs_call_body', 'hs_call_duration', 'hs_call_status', 'hubspot_owner_id'],
  emails: ['hs_timestamp', 'hs_email_subject', 'hs_email_direction', 'hs_email_status', 'hubspot_owner_id'],
  meetings: [
    'hs_timestamp',
    'hs_meeting_title',
    'hs_meeting_start_time',
    'hs_meeting_end_time',
    'hs_meeting_outcome',
    'hubspot_owner_id',
  ],
  notes: ['hs_timestamp', 'hs_note_body', 'hubspot_owner_id'],
  tasks: ['hs_timestamp', 'hs_task_subject', 'hs_task_body', 'hs_task_status', 'hs_task_priority', 'hubspot_owner_id'],
  communications: ['hs_timestamp', 'hs_communication_channel_type', 'hs_communication_body', 'hubspot_owner_id'],
  postal_mail: ['hs_timestamp', 'hs_postal_mail_body', 'hubspot_owner_id'],
  feedback_submissions: ['hs_submission_name', 'hs_submission_timestamp', 'hs_survey_type', 'hs_value', 'hs_content'],
  goal_targets: ['hs_goal_name', 'hs_target_amount', 'hs_start_datetime', 'hs_end_datetime'],
}

/** Contacts predate the `hs_` prefix. */
export function getModifiedProperty(type: string): string {
  return type === 'contacts' || type === '0-1' ? 'lastmodifieddate' : 'hs_lastmodifieddate'
}

/** A type that the account defines, by its fully qualified name or its id. */
export function isCustomType(type: string): boolean {
  return /^p\d*_\w+$/.test(type) || /^2-\d+$/.test(type)
}

/** The two types of a stream of associations such as `contacts_companies`; null for any other name. */
export function parseAssociationName(name: string): readonly [from: string, to: string] | null {
  for (const from of Object.keys(STANDARD_PROPERTIES)) {
    const to = name.startsWith(`${from}_`) ? name.slice(from.length + 1) : ''
    if (Object.hasOwn(STANDARD_PROPERTIES, to) || isCustomType(to)) return [from, to]
  }
  return null
}
