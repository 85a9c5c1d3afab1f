/**
 * The statements that every commit needs, in two functions: a page costs few messages, and the server keeps their plans
 * for as long as a connection, also behind a pooler that gives each transaction another one.
 *
 * `begin_commit` locks the tenant, then the sync, and reads what the commit depends on. Every statement of the function
 * sees what the last holders of the locks committed.
 *
 * `record_page` writes the facts of a page. A part whose arguments are null is left out: a page that sweeps calls it
 * before the sweep and after it.
 */
export const COMMIT_FUNCTIONS = `
create function tidemark.begin_commit(tenant text, worker text, sync text, database_names text[]) returns json language plpgsql as $$
declare
  head tidemark.tenants;
  entry tidemark.registry;
begin
  select * into head from tidemark.tenants t where t.tenant_id = tenant for update;
  select * into entry from tidemark.registry g where g.tenant_id = tenant and g.connector_id = worker and g.stream_id = sync for update;
  return json_build_object(
    'tenant', json_build_object('sequence', head.sequence, 'committed_at', head.committed_at),
    'entry', case when found then row_to_json(entry) end,
    'owners', (
      select json_agg(json_build_object('id', o.owner_id, 'name', o.name, 'sweeps', o.sweeps, 'holdings', array(
        select h.database_id from tidemark.holdings h where h.tenant_id = tenant and h.owner_id = o.owner_id
      ))) from tidemark.owners o where o.tenant_id = tenant
    ),
    'databases', (
      select json_agg(json_build_object('id', d.database_id, 'name', d.name, 'table', d.table_name, 'history', d.history_name, 'columns', d.columns,
        'layout', d.layout, 'drift', d.drift, 'historyDays', d.history_days, 'deletes', d.deletes, 'purgedTo', d.purged_to
      )) from tidemark.databases d where d.tenant_id = tenant and d.name = any(database_names)
    ),
    'hasQuarantined', exists (select from tidemark.quarantine q where q.tenant_id = tenant and q.sync_id = entry.sync_id),
    'newestKey', (select k.key_id from tidemark.data_keys k where k.tenant_id = tenant order by k.number desc limit 1)
  );
end $$;

create function tidemark.record_page(
  tenant text, sync integer, cycle bigint, page_number bigint, at bigint,
  databases integer[], firsts bigint[], lasts bigint[],
  seen_here int8multirange, seen_elsewhere int8multirange,
  head bigint, counts bigint[],
  continues boolean, next_state text, next_scope text, next_tidemark text, next_guard text
) returns void language plpgsql as $$
begin
  if databases is not null then
    insert into tidemark.commits (tenant_id, first_sequence, last_sequence, database_id, sync_id, cycle_id, page, committed_at)
    select tenant, unnest(firsts), unnest(lasts), unnest(databases), sync, coalesce(cycle, 0), page_number, at;
  end if;
  if seen_here is not null then
    insert into tidemark.seen (tenant_id, cycle_id, page, ranges) values (tenant, cycle, page_number, seen_here);
  end if;
  if seen_elsewhere is not null then
    insert into tidemark.seen (tenant_id, cycle_id, page, ranges)
    select tenant, g.inflight_cycle, -sync::bigint, seen_elsewhere from tidemark.registry g
    where g.tenant_id = tenant and g.inflight_mode = 'replace' and g.sync_id <> sync
    on conflict (tenant_id, cycle_id, page) do update set ranges = seen.ranges + excluded.ranges;
  end if;
  if head is not null then
    update tidemark.tenants t set sequence = head, committed_at = at where t.tenant_id = tenant;
  end if;
  if counts is not null then
    update tidemark.cycles c set pages = pages + 1, created = created + counts[1], updated = updated + counts[2], deleted = deleted + counts[3],
      swept = swept + counts[4], unchanged = unchanged + counts[5], stale = stale + counts[6], missing = missing + counts[7],
      quarantined = quarantined + counts[8], page = case when continues then page_number end, has_state = case when continues then next_state is not null end
    where c.tenant_id = tenant and c.cycle_id = cycle;
  end if;
  if continues then
    update tidemark.registry g set inflight_page = page_number, inflight_state = next_state, inflight_scope = next_scope,
      inflight_tidemark = next_tidemark, inflight_guard = next_guard
    where g.tenant_id = tenant and g.sync_id = sync;
  end if;
end $$;
`
