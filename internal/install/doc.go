// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install brings definitions, rights and policies to an API server, for the function Install of each package
// that has some.
//
// # Promise
//
//   - Objects are written by server-side apply, so that an installation may be repeated, also over an older version.
//   - What a newer version has installed is not narrowed: a [NewerError] names what this version lacks, and the object
//     stays as it is. So a version that drops a field or a right of an earlier one takes it away by code of its own.
//   - After it the API server answers requests for every kind.
//   - Each call has a deadline. The context bounds the whole.
//
// # No promise
//
// Nothing is removed: neither an older version of a definition nor a role that is not used any more.
package install
