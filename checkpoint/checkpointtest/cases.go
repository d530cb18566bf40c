// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpointtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"github.com/belayproject/belay/checkpoint"
)

func cases() []rule {
	return []rule{
		{"AbsentIsNotExist", "a stream without a record is fs.ErrNotExist, for Get and Read, and is not in List", absentIsNotExist},
		{"GetReturnsWhatWasPut", "Get returns exactly the bytes of the last Put, whatever they are; none is a payload, too", getReturnsWhatWasPut},
		{"PayloadsAreCopies", "neither a payload that was put nor one that was returned shares memory with the store", payloadsAreCopies},
		{"DigestIsOfThePayload", `Digest is "sha256:" and the SHA-256 of the payload in hex`, digestIsOfThePayload},
		{"UnchangedPutIsNoWrite", "a Put of what is the newest payload makes no generation, also after a restart", unchangedPutIsNoWrite},
		{"ChangedPutIsAWrite", "a Put of another payload makes a higher generation, also of one that was there before", changedPutIsAWrite},
		{"GenerationsAreUsedOnce", "the generations of a stream rise, over Delete and restart", generationsAreUsedOnce},
		{"RecordsOutliveTheProcess", "after a restart each stream has its newest record, and a deleted one has none", recordsOutliveTheProcess},
		{"DeleteRemovesTheStream", "a deleted stream is absent at once; deleting it again is no error", deleteRemovesTheStream},
		{"StreamsAreIndependent", "a write to one stream changes no other, however alike their names are", streamsAreIndependent},
		{"ListNamesTheDirectory", "List gives the full names of the streams in one directory, sorted; an absent directory has none", listNamesTheDirectory},
		{"NamesAreChecked", "a name that is not one or two safe segments is ErrName, for every call, and nothing is written", namesAreChecked},
		{"LongNamesWork", "every name that checkpoint.ValidateStream accepts works", longNamesWork},
		{"PayloadsAreLimited", "a payload above the limit is ErrTooLarge, and the old record stands; one at the limit is stored", payloadsAreLimited},
		{"EndedContextEndsTheCall", "a call with an ended context returns the context's error and does nothing", endedContextEndsTheCall},
		{"WriteErrorsAreClassed", "an error of Put or Delete matches exactly one of ErrNotWritten and ErrIndeterminate", writeErrorsAreClassed},
		{"ClosedIsErrClosed", "a call after Close returns fs.ErrClosed", closedIsErrClosed},
		{"ConcurrentPutsAreWhole", "Puts of one stream at once each make one generation; a Get sees one of them whole, never an older than before", concurrentPutsAreWhole},
	}
}

func absentIsNotExist(k *checker) {
	k.put("other", "x")
	for _, stream := range []string{"a", "d/a", "other.x", "other/x"} {
		_, err := k.Get(k.Context(), stream)
		_, readErr := k.Read(k.Context(), stream)
		if !errors.Is(err, fs.ErrNotExist) || !errors.Is(readErr, fs.ErrNotExist) {
			k.fail("Get and Read of %q: got %v and %v, want fs.ErrNotExist", stream, err, readErr)
		}
	}
	k.wantList("", "other")
	k.wantList("d")
}

func getReturnsWhatWasPut(k *checker) {
	payloads := []string{
		"plain", "", "\n", "\x00", "\x00\xff\n\r\n", " lead and trail ", strings.Repeat("\nend of belay-record\n", 3),
		strings.Repeat("0123456789abcdef", 20<<10),
	}
	for i, p := range payloads {
		for _, stream := range []string{"a", "d/" + strconv.Itoa(i)} {
			k.put(stream, p)
			k.want(stream, p)
		}
	}
	if err := k.Put(k.Context(), "nil", nil); err != nil {
		k.fail("Put of nil: got %v, want nil", err)
	}
	k.want("nil", "")
}

func payloadsAreCopies(k *checker) {
	payload := []byte("payload")
	if err := k.Put(k.Context(), "a", payload); err != nil {
		k.fail("Put: got %v, want nil", err)
	}
	clear(payload)
	k.want("a", "payload")
	got, err := k.Get(k.Context(), "a")
	if err != nil {
		k.fail("Get: got %v, want nil", err)
	}
	clear(got)
	clear(append(got, make([]byte, 100)...)) // the room behind it is the caller's, too
	k.want("a", "payload")
}

func digestIsOfThePayload(k *checker) {
	for _, p := range []string{"", "payload"} {
		k.put("a", p)
		sum := sha256.Sum256([]byte(p))
		want := "sha256:" + hex.EncodeToString(sum[:])
		rec, err := k.Read(k.Context(), "a")
		if err != nil || rec.Digest != want {
			k.fail("Read: got digest %q, error %v, want %q", rec.Digest, err, want)
		}
	}
}

func unchangedPutIsNoWrite(k *checker) {
	for _, p := range []string{"payload", ""} {
		k.put("a", p)
		was := k.want("a", p)
		k.put("a", p)
		if got := k.want("a", p); got != was {
			k.fail("generation after an unchanged Put: got %d, want %d", got, was)
		}
		k.reopen()
		k.put("a", p)
		if got := k.want("a", p); got != was {
			k.fail("generation after an unchanged Put after a restart: got %d, want %d", got, was)
		}
	}
}

func changedPutIsAWrite(k *checker) {
	last := uint64(0)
	for _, p := range []string{"a", "b", "a", "", "a", "A"} {
		k.put("a", p)
		got := k.want("a", p)
		if got <= last {
			k.fail("generation: got %d after %d, want a higher one", got, last)
		}
		last = got
	}
}

func generationsAreUsedOnce(k *checker) {
	last := uint64(0)
	for i := range 12 {
		k.put("d/a", strconv.Itoa(i))
		got := k.want("d/a", strconv.Itoa(i))
		if got <= last {
			k.fail("generation of Put %d: got %d after %d, want a higher one", i, got, last)
		}
		last = got
		if i%3 == 1 {
			k.delete("d/a")
		}
		if i%4 == 1 {
			k.reopen()
		}
	}
}

func recordsOutliveTheProcess(k *checker) {
	for _, p := range []string{"1", "2", "3", "4", "5"} {
		k.put("a", "a"+p)
		k.put("d/a", "d"+p)
		k.put("gone", p)
	}
	k.put("empty", "")
	k.delete("gone")
	for range 2 {
		k.reopen()
		k.want("a", "a5")
		k.want("d/a", "d5")
		k.want("empty", "")
		k.wantAbsent("gone")
		k.wantList("", "a", "empty")
	}
}

func deleteRemovesTheStream(k *checker) {
	k.delete("never")
	k.delete("d/never")
	for range 2 {
		k.put("a", "1")
		k.put("a", "2")
		k.delete("a")
		k.wantAbsent("a")
		k.wantList("")
		k.delete("a")
	}
	k.reopen()
	k.wantAbsent("a")
}

func streamsAreIndependent(k *checker) {
	names := []string{
		"a", "a.a", "a-a", "a_a", "aa", "a.0000000000000001", "a.unsure", "a.0000000000000001.foreign", "a.damaged-digest",
		"a/a", "a.a/a", "a/aa", "b/a",
	}
	for _, n := range names {
		k.put(n, "of "+n)
	}
	for _, n := range names {
		k.put(n, "new "+n)
		for _, other := range names {
			if other != n {
				k.want(other, "of "+other)
			}
		}
		k.delete(n)
		k.wantAbsent(n)
		k.put(n, "of "+n)
	}
	k.reopen()
	for _, n := range names {
		k.want(n, "of "+n)
	}
}

func endedContextEndsTheCall(k *checker) {
	k.put("a", "old")
	ctx, cancel := context.WithCancel(k.Context())
	cancel()
	_, getErr := k.Get(ctx, "a")
	_, listErr := k.List(ctx, "")
	putErr, deleteErr := k.Put(ctx, "a", []byte("new")), k.Delete(ctx, "a")
	for op, err := range map[string]error{"Get": getErr, "List": listErr, "Put": putErr, "Delete": deleteErr} {
		if !errors.Is(err, context.Canceled) {
			k.fail("%s with an ended context: got %v, want context.Canceled", op, err)
		}
	}
	k.want("a", "old")
}

func writeErrorsAreClassed(k *checker) {
	ctx, cancel := context.WithCancel(k.Context())
	cancel()
	errs := map[string]error{
		"Put with a bad name": k.Put(k.Context(), "..", nil), "Delete with a bad name": k.Delete(k.Context(), ".."),
		"Put with an ended context": k.Put(ctx, "a", nil), "Delete with an ended context": k.Delete(ctx, "a"),
		"Put of too much": k.Put(k.Context(), "a", make([]byte, maxPayload+1)),
	}
	for op, err := range errs {
		if errors.Is(err, checkpoint.ErrNotWritten) == errors.Is(err, checkpoint.ErrIndeterminate) {
			k.fail("%s: got %v, want exactly one of ErrNotWritten and ErrIndeterminate", op, err)
		}
	}
}

func closedIsErrClosed(k *checker) {
	k.put("a", "x")
	if err := k.Close(); err != nil {
		k.fail("Close: %v", err)
	}
	_, getErr := k.Get(k.Context(), "a")
	_, readErr := k.Read(k.Context(), "a")
	_, listErr := k.List(k.Context(), "")
	putErr, deleteErr := k.Put(k.Context(), "a", nil), k.Delete(k.Context(), "a")
	for op, err := range map[string]error{"Get": getErr, "Read": readErr, "List": listErr, "Put": putErr, "Delete": deleteErr} {
		if !errors.Is(err, fs.ErrClosed) {
			k.fail("%s after Close: got %v, want fs.ErrClosed", op, err)
		}
	}
	k.Store = k.place(k.TB)
	k.want("a", "x")
}

func concurrentPutsAreWhole(k *checker) {
	const writers, each = 4, 15
	k.put("a", body(0, 0))
	first := k.want("a", body(0, 0))
	var wg sync.WaitGroup
	errs := make(chan string, 2*writers)
	for w := 1; w <= writers; w++ {
		wg.Go(func() {
			for i := range each {
				if err := k.Put(k.Context(), "a", []byte(body(w, i))); err != nil {
					errs <- "Put: " + err.Error()
					return
				}
			}
		})
		wg.Go(func() {
			if problem := k.watch(writers, each); problem != "" {
				errs <- problem
			}
		})
	}
	wg.Wait()
	close(errs)
	for problem := range errs {
		k.fail("%s", problem)
	}
	rec, err := k.Read(k.Context(), "a")
	if err != nil || rec.Generation != first+writers*each {
		k.fail("generation after %d Puts: got %d, error %v, want %d", writers*each, rec.Generation, err, first+writers*each)
	}
}

// body is a payload that shows whether it is whole.
func body(writer, i int) string {
	return strings.Repeat(strconv.Itoa(writer)+"-"+strconv.Itoa(i)+" ", 100+i)
}

// watch reads while others write.
func (k *checker) watch(writers, each int) (problem string) {
	last := uint64(0)
	for range 100 {
		rec, err := k.Read(k.Context(), "a")
		text, _, _ := strings.Cut(string(rec.Payload), " ")
		w, i, _ := strings.Cut(text, "-")
		writer, badWriter := strconv.Atoi(w)
		number, badNumber := strconv.Atoi(i)
		switch {
		case err != nil:
			return "Read: " + err.Error()
		case rec.Generation < last:
			return "Read: generation " + strconv.FormatUint(rec.Generation, 10) + " after " + strconv.FormatUint(last, 10)
		case badWriter != nil || badNumber != nil || writer > writers || number >= each || string(rec.Payload) != body(writer, number):
			return "Read: a payload that nobody put"
		}
		last = rec.Generation
	}
	return ""
}
