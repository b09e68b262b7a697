-- The communities of the page, the largest first: so a parent is there whenever its child is.
SELECT community AS number, level, parent, title, size
FROM communities
ORDER BY size DESC, level, community
LIMIT $communities
