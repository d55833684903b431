// Package controller turns each MyProxy into a fleet of nginx pods, and writes into its status which pods there are and
// whether they serve.
//
//	events.go          observe.go         desired.go + one file a child       apply.go                 status.go
//	watch ─▶ Reconcile ─▶ observed{…}  ─▶ desired{apply configurations}  ─▶ the server's answers ─▶ MyProxyStatus ─▶ one status apply
//	         reconciler.go  reads only      pure                              writes, prunes            pure             report
//
// Reconcile is a table of contents: observe, desire, apply, report. Of the files only reconciler.go, events.go, observe.go and
// apply.go know a client; in the others there is no I/O and no clock.
//
// Everything that is written is a server-side apply that forces its fields: nobody else owns them, so there is no conflict to
// retry, and nothing to compare before. What spares a request is the memory (memory.go): the intent that was applied
// last, and the version that the server answered.
package controller
