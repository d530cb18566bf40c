// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

// removal is what Delete does, in this order: the files in first, an fsync, then last, an fsync.
type removal struct {
	first []string
	last  string // "" = nothing is there
	whole bool   // last verifies
}

// remover takes streams away. What is read last goes last, so that no older record comes back.
type remover struct {
	dir   *directory
	books *books
}

// removeStream takes away everything but the record that reading returns, makes that durable, and then takes that one
// away. The stream's turn is the caller's.
func (m *remover) removeStream(st *stream) error {
	if err := m.dir.checkReady(st.in); err != nil {
		return err
	}
	r, err := m.planRemoval(st)
	if err != nil {
		return err
	}
	for _, file := range r.first {
		if err := m.dir.sys.unlink(st.in.fd, file); err != nil && !isGone(err) {
			return err
		}
	}
	if len(r.first) > 0 {
		if err := st.in.barrier.wait(); err != nil {
			return err
		}
	}
	floor, err := m.removeLast(st, r)
	if err != nil {
		return err
	}
	unsure := m.books.clearStream(st)
	if r.last == "" && !unsure {
		return nil
	}
	if err := st.in.barrier.wait(); err != nil {
		m.books.vanishStream(st)
		return indeterminate(err)
	}
	m.finishRemoval(st, floor)
	return nil
}

func (m *remover) planRemoval(st *stream) (removal, error) {
	m.books.mu.Lock()
	defer m.books.mu.Unlock()
	var r removal
	for _, g := range st.gens {
		if g.is(reasonTooNew) {
			return r, &Damage{Stream: st.name.String(), Generation: g.gen, Reason: reasonTooNew, Err: g.flaw.err}
		}
		file := recordFile(st.name.base, g.gen)
		if g.flaw == nil && r.last == "" {
			r.last, r.whole = file, true
			continue
		}
		r.first = append(r.first, file)
	}
	for _, a := range st.aside {
		r.first = append(r.first, asideFile(st.name.base, a.gen, a.reason))
	}
	if r.last == "" && len(r.first) > 0 {
		r.first, r.last = r.first[1:], r.first[0]
	}
	return r, nil
}

// removeLast takes the last file away. A whole record becomes the mark of the highest generation in its directory, by
// one rename, which needs no room: so no number comes back.
func (m *remover) removeLast(st *stream, r removal) (floor uint64, err error) {
	if r.last == "" {
		return 0, nil
	}
	m.books.mu.Lock()
	top, old := st.top, st.in.floor
	m.books.mu.Unlock()
	switch {
	case r.whole && top > old:
		err = m.dir.sys.rename(st.in.fd, r.last, floorFile(top))
		if isTaken(err) {
			// The record of another stream with that number is the mark already; once that is durable, ours may go.
			if err = st.in.barrier.wait(); err == nil {
				err = m.dir.sys.unlink(st.in.fd, r.last)
			}
		}
		floor = top
	case top > old:
		floor = m.makeFloor(st.in, top)
		err = m.dir.sys.unlink(st.in.fd, r.last)
	default:
		err = m.dir.sys.unlink(st.in.fd, r.last)
	}
	if isMedia(err) {
		if _, gone := m.dir.sys.statAt(st.in.fd, r.last); isGone(gone) {
			m.books.vanishStream(st)
		}
		return 0, indeterminate(err)
	}
	if isGone(err) {
		return 0, nil
	}
	return floor, err
}

// makeFloor makes the mark where no whole record can become it. On a full disk it goes without: then nothing of the
// stream is left that the number could be taken for.
func (m *remover) makeFloor(f *folder, gen uint64) uint64 {
	fd, err := m.dir.sys.openAt(f.fd, floorFile(gen), openNew)
	if err != nil {
		return 0
	}
	m.dir.sys.close(fd)
	return gen
}

// finishRemoval is housekeeping: what fails here is done by a later call, or does no harm.
func (m *remover) finishRemoval(st *stream, floor uint64) {
	m.books.mu.Lock()
	old, marked := st.in.floor, st.marked
	st.in.floor = max(old, floor)
	st.marked = false
	m.books.mu.Unlock()
	if floor != 0 {
		m.dir.truncateFile(st.in.fd, floorFile(floor)) // the payload of what is deleted has no business there
	}
	if floor != 0 && old != 0 && floor > old {
		_ = m.dir.sys.unlink(st.in.fd, floorFile(old))
	}
	if marked {
		_ = m.dir.sys.unlink(st.in.fd, unsureFile(st.name.base))
	}
}
