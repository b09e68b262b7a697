-- The communities of the page, the largest first, so that a child never comes without its parent.
SELECT community AS number, level, parent, title, size
FROM communities
ORDER BY size DESC, level, community
LIMIT $communities
